//! A PTX front end and interpreter.
