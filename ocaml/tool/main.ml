let () = Tool.Command.main ()
