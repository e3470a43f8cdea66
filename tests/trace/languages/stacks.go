package main

// int twice(int x) { return 2 * x; }
import "C"

import (
	"fmt"
	"runtime"
	"time"
)

//go:noinline
func leaf(n int) int {
	if n == 0 {
		return 1
	}
	var big [256]int
	big[n%256] = n
	return leaf(n-1) + big[(n+1)%256]
}

//go:noinline
func work(id int) int {
	s := int(C.twice(0))
	for i := 0; i < 200; i++ {
		s += leaf(100 + i%50)
		if i%20 == 0 {
			runtime.GC()
		}
	}
	return s
}

func main() {
	start := time.Now()
	done := make(chan int)
	total := 0
	for time.Since(start) < time.Second {
		for g := 0; g < 8; g++ {
			go func(g int) { done <- work(g) }(g)
		}
		for g := 0; g < 8; g++ {
			total += <-done
		}
	}
	fmt.Println("ok", total > 0)
}
