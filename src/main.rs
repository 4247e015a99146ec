//! The `tsuzuki` command: the command line over the library, which does the work.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os())
}
