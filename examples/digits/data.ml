(* The images, see README.md: 33 bytes each, the digit and 64 pixels of 4 bits. *)

let pixels = 64
let classes = 10
let trained = 5000
let tested = 1000
let record = 33

let image_and_label index =
  let at = index * record in
  let pixel i =
    let byte = Char.code Files.digits.[at + 1 + (i / 2)] in
    float_of_int (if i mod 2 = 0 then byte land 15 else byte lsr 4) /. 15.0
  in
  (Array.init pixels pixel, Char.code Files.digits.[at])

let floats length =
  Bigarray.Genarray.create Bigarray.float32 Bigarray.c_layout [| length |]

let ints length = Bigarray.Genarray.create Bigarray.int32 Bigarray.c_layout [| length |]

(* Pixels and digits of [count] images from image [first], one after the other. *)
let slice ~first ~count =
  let images = floats (count * pixels) and labels = ints count in
  for row = 0 to count - 1 do
    let image, label = image_and_label (first + row) in
    Array.iteri
      (fun i value -> Bigarray.Genarray.set images [| (row * pixels) + i |] value)
      image;
    Bigarray.Genarray.set labels [| row |] (Int32.of_int label)
  done;
  (images, labels)

let training () = slice ~first:0 ~count:trained
let test () = slice ~first:trained ~count:tested

(* For each epoch an order of all training images: the same for the same seed, on any machine. *)
let orders ~seed ~epochs ~steps ~batch =
  let state = Random.State.make [| seed |] in
  let order = ints (epochs * steps * batch) in
  let images = Array.init trained Fun.id in
  for epoch = 0 to epochs - 1 do
    for i = trained - 1 downto 1 do
      let j = Random.State.int state (i + 1) in
      let kept = images.(i) in
      images.(i) <- images.(j);
      images.(j) <- kept
    done;
    for i = 0 to (steps * batch) - 1 do
      Bigarray.Genarray.set order
        [| (epoch * steps * batch) + i |]
        (Int32.of_int images.(i))
    done
  done;
  order
