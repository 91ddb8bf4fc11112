//! A shell at the other end of a pipe. It acts on one line at a time and answers each with a line. At the end of its
//! input it cleans up: that end comes when it is dropped, and when this process ends in any way.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use crate::{Error, Result};

#[derive(Debug)]
pub(crate) struct Helper {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts the shell that `command` describes, with pipes as its input and output.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn start(command: &mut Command) -> Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::system("start /bin/sh"))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, requests, answers })
    }

    /// Returns its answer to a line, without white space around it.
    ///
    /// # Errors
    /// If the shell has ended, which means that it was killed.
    pub fn request(&mut self, line: &str) -> io::Result<String> {
        writeln!(self.requests.as_mut().expect("open until drop"), "{line}")?;
        let mut answer = String::new();
        let len = self.answers.read_line(&mut answer)?;
        if len == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(answer.trim().to_owned()) }
    }

    /// Returns its exit status if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns the number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it before it cleans up.
    pub fn kill(&mut self) {
        // One that has ended needs no signal.
        let _ = self.child.kill();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.requests.take());
        // The caller continues once it has cleaned up; if it was killed, there is nothing to wait for.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Helper {
        Helper::start(Command::new("/bin/sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn it_answers_line_by_line_and_has_cleaned_up_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("end");
        let mut helper =
            shell(&format!("while read -r line; do echo \" said $line \"; done; sleep 0.1; : >'{}'", file.display()));
        assert_eq!(helper.request("one two").unwrap(), "said one two");
        assert_eq!(helper.request("three").unwrap(), "said three");
        assert!(helper.ended().is_none() && !file.exists());
        drop(helper);
        assert!(file.exists());
    }

    #[test]
    fn one_that_was_killed_is_an_error_and_not_an_empty_answer() {
        let mut helper = shell("read -r line; echo; exec sleep 1000");
        assert_eq!(helper.request("one").unwrap(), "");
        helper.kill();
        assert_eq!(helper.request("two").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
