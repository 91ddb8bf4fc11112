//! Why a command ended without success, and what the shell hears of it.

use std::io;
use std::process::ExitCode;

use lab::run::RunError;
use lab::scenario::LoadError;

/// Why a command ended without success.
#[derive(Debug)]
pub enum Failure {
    /// What was given is wrong: exit code 2.
    Input(String),
    /// It was tried and failed: exit code 1.
    Failed(String),
    /// Nobody reads our output any more, as with `anabranch ... | head`: not worth a word.
    NobodyReads,
}

impl Failure {
    /// Says why on standard error; gives the exit code.
    pub fn report(self) -> ExitCode {
        let (code, message) = match self {
            Self::Input(message) => (2, message),
            Self::Failed(message) => (1, message),
            Self::NobodyReads => return ExitCode::SUCCESS,
        };
        // If standard error is closed as well there is nobody left to tell.
        let _ = crate::console::complain(&format!("error: {message}\n"));
        ExitCode::from(code)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Output(error) => error.into(),
            RunError::Backend(error) => match error.downcast::<linux::Error>() {
                Ok(error) => (*error).into(),
                Err(error) => Self::Failed(error.to_string()),
            },
            error => Self::Input(error.to_string()),
        }
    }
}

impl From<atomic_file::Error> for Failure {
    fn from(error: atomic_file::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<linux::Error> for Failure {
    fn from(error: linux::Error) -> Self {
        match error {
            linux::Error::Kept { cause, kept } => match Self::from(*cause) {
                Self::Input(message) => Self::Input(format!("{message}; {kept}")),
                Self::Failed(message) => Self::Failed(format!("{message}; {kept}")),
                Self::NobodyReads => Self::NobodyReads,
            },
            linux::Error::NobodyReads => Self::NobodyReads,
            linux::Error::File { .. } | linux::Error::Usage(_) => Self::Input(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}
