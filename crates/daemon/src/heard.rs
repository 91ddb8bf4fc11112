//! Captures the log events of a test's thread.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default, set_global_default};
use tracing::{Event, Metadata, Subscriber};

use crate::lock;

/// Makes threads of other tests, which do not listen, care for all events. Otherwise, a thread that is the first to
/// reach an event at the moment in which another begins to listen may mark it as one that nobody wants.
static OTHERS: Once = Once::new();

/// The captured events, one line each: message and fields. Without a place for them, it wants all and drops them.
#[derive(Clone)]
pub struct Heard(Option<Arc<Mutex<Vec<String>>>>);

impl Default for Heard {
    fn default() -> Self {
        Self(Some(Arc::default()))
    }
}

impl Heard {
    /// Captures the calling thread's events until the guard is dropped.
    pub fn listen(&self) -> DefaultGuard {
        OTHERS.call_once(|| set_global_default(Self(None)).expect("no test sets another one"));
        set_default(self.clone())
    }

    /// Returns the events since the last call.
    pub fn take(&self) -> String {
        self.0.as_ref().map(|lines| core::mem::take(&mut *lock(lines)).join("\n")).unwrap_or_default()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for Heard {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let Some(lines) = &self.0 else { return };
        let mut line = Line(String::new());
        event.record(&mut line);
        lock(lines).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
