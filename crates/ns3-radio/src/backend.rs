//! Advances the simulation of a run and that of its radio together.

use lab::run::{Backend, ForeignMedium, GoesOn, LabHost, Media, Passed, RunError};
use lab::scenario::Scenario;
use linux::stop::Stop;
use network::MediumId;
use simulator::Simulation;
use units::Instant;

use crate::Error;
use crate::process::{Arrival, Medium, Process, find_program};
use crate::settings::Settings;

/// The radio of a run.
pub struct Radio {
    process: Process,
    media: Vec<(Medium, MediumId)>,
    arrivals: Vec<Arrival>,
    stop: Stop,
}

impl Radio {
    /// Starts the radio of `scenario`, whose values are drawn.
    ///
    /// # Errors
    /// If the program is missing or cannot be started.
    pub fn start(scenario: &Scenario) -> Result<Self, Error> {
        let program = find_program()?;
        let settings = Settings::of(scenario)?;
        let process = Process::start(&program, &settings.lines)?;
        let stop = Stop::on_signals().map_err(|error| Error::Ended(error.to_string()))?;
        Ok(Self { process, media: Vec::new(), arrivals: Vec::new(), stop })
    }

    /// Hands the packets that have entered the media over to ns-3, which stands at the same time.
    fn hand_over(&mut self, simulation: &mut Simulation<LabHost>) -> Result<(), Error> {
        for (medium, id) in &self.media {
            let entered = simulation.with_medium(*id, |medium: &mut ForeignMedium, _| medium.take_entered());
            for packet in entered.unwrap_or_default() {
                self.process.send(*medium, &packet)?;
            }
        }
        Ok(())
    }

    /// Lets ns-3 run up to `until`, or to the next arrival; then both are at the same time again.
    fn advance(&mut self, simulation: &mut Simulation<LabHost>, until: Instant) -> Result<(), Error> {
        let now = self.process.run(until, &mut self.arrivals)?;
        if now < simulation.now() || now > until {
            return Err(Error::NotUnderstood(format!("t {}", now.as_nanos())));
        }
        simulation.run_until(now);
        for Arrival { medium, from, to, number } in self.arrivals.drain(..) {
            let known = self.media.iter().find(|(known, _)| *known == medium);
            if let Some((_, id)) = known {
                simulation.with_medium(*id, |medium: &mut ForeignMedium, _| medium.arrive(from, to, number));
            }
        }
        Ok(())
    }

    fn pass_time(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, Error> {
        loop {
            let now = simulation.now();
            if simulation.run_while(now, goes_on) {
                self.hand_over(simulation)?;
                return Ok(Passed::Enough);
            }
            self.hand_over(simulation)?;
            if self.stop.is_triggered() {
                return Ok(Passed::Interrupted);
            }
            if now >= until {
                return Ok(Passed::Enough);
            }
            let next = simulation.next_event().map_or(until, |at| at.clamp(now, until));
            self.advance(simulation, next)?;
        }
    }
}

impl Backend for Radio {
    fn name(&self) -> &'static str {
        "ns3"
    }

    fn has_media(&self) -> bool {
        true
    }

    fn carry_media(&mut self, media: Media) {
        let known = [(Medium::Cell, media.cell), (Medium::Wlan, media.wlan)];
        self.media = known.into_iter().filter_map(|(medium, id)| Some((medium, id?))).collect();
    }

    fn pass(
        &mut self,
        simulation: &mut Simulation<LabHost>,
        until: Instant,
        goes_on: &GoesOn<'_>,
    ) -> Result<Passed, RunError> {
        self.pass_time(simulation, until, goes_on).map_err(|error| RunError::Backend(Box::new(error)))
    }
}
