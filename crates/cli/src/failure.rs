//! Failures of a command, and their exit codes.

use std::io;
use std::process::ExitCode;

use lab::run::RunError;
use lab::scenario::LoadError;

/// Why a command ended without success.
#[derive(Debug)]
pub enum Failure {
    /// What the user wrote cannot work as it is written, an argument or a file that it names: exit code 2.
    Input(String),
    /// The operation failed, or its answer is no: exit code 1.
    Failed(String),
    /// The failure is already reported in another form on standard error; only the exit code remains.
    Said(u8),
    /// The reader of our output is gone, as with `anabranch run ... | head`: no message. A download that its reader
    /// abandons is incomplete, and therefore a failure.
    NobodyReads,
}

impl Failure {
    /// Returns the exit code and the message.
    pub fn parts(&self) -> (u8, Option<&str>) {
        match self {
            Self::Input(message) => (2, Some(message)),
            Self::Failed(message) => (1, Some(message)),
            Self::Said(code) => (*code, None),
            Self::NobodyReads => (0, None),
        }
    }

    /// The failure to write a file or folder that the user named.
    pub fn of_output(error: io::Error) -> Self {
        let what = error.to_string();
        Self::of_place(&error, what)
    }

    /// The same, with a text of the caller's. `error` must be that of the system: a name that is too long shows in its
    /// number alone.
    pub fn of_place(error: &io::Error, what: String) -> Self {
        if atomic_file::is_misplaced(error) { Self::Input(what) } else { io::Error::new(error.kind(), what).into() }
    }

    /// Writes the message to standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        let (code, message) = self.parts();
        let Some(message) = message else { return ExitCode::from(code) };
        // If standard error is closed as well, there is no place left for the message.
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
            RunError::Output(error) => Self::of_output(error),
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
        Self::of_place(&error.source, error.to_string())
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
                failure => failure,
            },
            linux::Error::File { .. } | linux::Error::Usage(_) => Self::Input(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_reads_a_download_and_goes_away_makes_it_fail() {
        let gone = linux::Error::NobodyReads { place: "it".into(), written_bytes: 5, whole_bytes: None };
        assert!(
            matches!(Failure::from(gone), Failure::Failed(why) if why == "the reader of it closed it after 5 bytes")
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_input_and_a_full_disk_is_not() {
        let of = |kind: io::ErrorKind| {
            let error = || atomic_file::Error::at("x".as_ref())(kind.into());
            let direct = Failure::from(error());
            for other in [linux::Error::from(error()), linux::Error::output("x")(kind.into())] {
                assert_eq!(direct.parts().0, Failure::from(other).parts().0, "{kind}");
            }
            direct.parts().0
        };
        use io::ErrorKind as Kind;
        assert_eq!(
            [Kind::NotFound, Kind::PermissionDenied, Kind::NotADirectory, Kind::ReadOnlyFilesystem].map(of),
            [2; 4]
        );
        assert_eq!([Kind::StorageFull, Kind::QuotaExceeded, Kind::Other].map(of), [1; 3]);
    }

    #[test]
    fn what_is_kept_changes_no_exit_code() {
        let of = |cause| Failure::from(linux::Error::Kept { cause: Box::new(cause), kept: "kept".into() });
        assert!(matches!(of(linux::Error::Interrupted), Failure::Failed(why) if why == "interrupted; kept"));
        assert!(matches!(of(linux::Error::Usage("wrong".into())), Failure::Input(why) if why == "wrong; kept"));
    }
}
