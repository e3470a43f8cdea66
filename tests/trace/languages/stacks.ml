(* Collects garbage below frames of its own: the runtime looks for their return addresses. *)
let rec numbers n = if n = 0 then [] else string_of_int n :: numbers (n - 1)
let rec length l = match l with [] -> 0 | x :: rest -> String.length x + length rest

exception Found of int

let find l =
  try
    List.iter (fun x -> if String.length x > 2 then raise (Found 1)) l;
    0
  with Found n -> n

let () =
  let total = ref 0 in
  for _ = 1 to 50 do
    let l = numbers 2000 in
    total := !total + length l + find l;
    Gc.full_major ()
  done;
  Printf.printf "%d\n" !total
