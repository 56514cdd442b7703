let () = print_endline "cudajit is not installed"
