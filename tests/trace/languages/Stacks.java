// Throws, allocates and collects garbage in several threads.
import java.util.ArrayList;
import java.util.List;

public class Stacks {
  static int checked(int n) {
    if (n < 0) throw new IllegalStateException("negative");
    return n * 3;
  }

  static void work() {
    List<byte[]> kept = new ArrayList<>();
    for (int i = 0; i < 300_000; i++) {
      kept.add(new byte[1000]);
      if (kept.size() > 3000) kept.clear();
      try {
        checked(i % 500 == 0 ? -1 : i);
      } catch (IllegalStateException e) {
        if (e.getStackTrace().length == 0) System.out.println("an exception without frames");
      }
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 4; i++) threads.add(new Thread(Stacks::work));
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    System.out.println("done");
  }
}
