//! Events of a daemon on standard error: one line each for people, or one JSON object each for programs.

use std::fmt::{self, Debug, Write as _};
use std::io;

use linux::clock::Clock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, layer};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::arguments::{Log, LogFormat};
use crate::outlet::{Drained, Outlet};

/// Starts logging. The caller must drop the result at the end.
pub fn begin(log: &Log) -> Drained {
    let outlet = Outlet::to(io::stderr());
    let drained = outlet.drained();
    let writer = move || outlet.clone();
    let layer = match log.log_format {
        LogFormat::Json => layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .log_internal_errors(false)
            .with_writer(writer)
            .boxed(),
        LogFormat::Text => {
            let clock = Clock::start();
            let is_plain = !log.level.would_enable("daemon", &Level::DEBUG);
            layer().event_format(Text { clock, is_plain }).log_internal_errors(false).with_writer(writer).boxed()
        }
    };
    // A process runs one daemon; a second one would share this log.
    let _ = tracing_subscriber::registry().with(layer.with_filter(log.level.clone())).try_init();
    drained
}

/// The message alone. If more than the default is logged, every line has time, level and fields.
struct Text {
    clock: Clock,
    is_plain: bool,
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut words = Words::default();
        event.record(&mut words);
        let level = *event.metadata().level();
        if self.is_plain && level <= Level::INFO {
            return writeln!(writer, "{}", words.message);
        }
        let (seconds, target) = (self.clock.now().as_secs_f64(), event.metadata().target());
        writeln!(writer, "{seconds:.3} s {} {target}: {}{}", level.as_str().to_lowercase(), words.message, words.fields)
    }
}

#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
