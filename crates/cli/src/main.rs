//! The `anabranch` command.
//!
//! Exit codes (docs/exit-codes.md): 0 it worked, 1 it failed or the answer is no, 2 it cannot work as it is written.

mod arguments;
mod commands;
mod console;
mod failure;
mod interruptible;
mod log;
mod outlet;
mod qr;
mod rate;
mod real_path;
mod service;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return said(answer),
    };
    let outcome = match arguments.command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Sweep(arguments) => commands::sweep::sweep(&arguments),
        Command::Compare(arguments) => commands::compare::compare(&arguments),
        Command::Check(arguments) => commands::check::check(&arguments),
        Command::Scenarios(arguments) => commands::scenarios::scenarios(&arguments),
        Command::Policies(arguments) => commands::policies::policies(&arguments),
        Command::Select(arguments) => commands::select::select(&arguments),
        Command::Fading(arguments) => commands::fading::fading(&arguments),
        Command::Claims(arguments) => commands::claims::claims(&arguments),
        Command::Demo(arguments) => commands::demo::demo(&arguments),
        Command::Emulate(arguments) => commands::emulate::emulate(&arguments),
        Command::Serve(arguments) => commands::serve::serve(&arguments),
        Command::Get(arguments) => commands::get::get(&arguments),
        Command::Join(arguments) => commands::join::join(&arguments),
        Command::Relay(arguments) => commands::relay::relay(&arguments),
        Command::Peers(arguments) => commands::peers::peers(&arguments),
        Command::Status(arguments) => commands::status::status(&arguments),
        Command::Doctor(arguments) => commands::doctor::doctor(&arguments),
        Command::Cc(arguments) => commands::cc::cc(&arguments),
        Command::Clean => commands::clean::clean(),
        Command::Manual(arguments) => commands::manual::manual(&arguments),
        Command::Completions(arguments) => commands::manual::completions(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints the parser's answer. Help and version are results on standard output, so writing them may fail; errors go to
/// standard error.
fn said(mut answer: clap::Error) -> ExitCode {
    if answer.kind() == ErrorKind::ArgumentConflict {
        // If two options exclude each other, clap's usage shows only one of them, as if no other were valid.
        answer.remove(ContextKind::Usage);
    }
    match answer.print() {
        Err(error) if !answer.use_stderr() => {
            let what = format!("cannot write to standard output: {error}");
            Failure::from(std::io::Error::new(error.kind(), what)).report()
        }
        _ => ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2)),
    }
}
