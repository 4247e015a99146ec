//! The `tsuzuki` command.

fn main() -> std::process::ExitCode {
    tsuzuki::cli::run(std::env::args_os())
}
