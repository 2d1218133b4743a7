//! Shell blocks, understood as settings and never executed: sysctls, module parameters, routes and queues.

mod commands;
mod shell;
mod sysctl;

use crate::problem::{Problem, Refusal};
use crate::script::Block;
use crate::settings::Settings;
pub(crate) use commands::IPV4_AND_TCP_HEADER_BYTES;
use firstflight_tcp::WindowPacing;

/// The settings from shell blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct Environment {
    /// The TCP of both kinds of endpoint.
    pub settings: Settings,
    /// The queue of the interface takes no packet.
    pub interface_is_full: bool,
    /// The queue of the interface is `fq`, which paces.
    queue_paces: bool,
    pacing: WindowPacing,
}

impl Environment {
    /// An environment with these settings.
    pub fn new(settings: Settings) -> Self {
        // Linux's tcp_pacing_ss_ratio, tcp_pacing_ca_ratio and tcp_min_tso_segs.
        let pacing = WindowPacing { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 };
        Self { settings, interface_is_full: false, queue_paces: false, pacing }
    }

    /// Whether the queue of the interface paces. A profile that paces by itself keeps its own pacing until there is a queue.
    fn set_pacing(&mut self, queue_paces: bool) -> Result<(), Refusal> {
        if queue_paces {
            let WindowPacing { slow_start_percent, avoidance_percent, burst_segments } = self.pacing;
            let pacing = format!(
                "{{ slow_start_percent = {slow_start_percent}, avoidance_percent = {avoidance_percent}, \
                 burst_segments = {burst_segments} }}"
            );
            self.settings.write("pacing", &pacing)?;
        } else if self.queue_paces {
            self.settings.write("pacing", "none")?;
        }
        self.queue_paces = queue_paces;
        Ok(())
    }

    /// Applies the settings of a shell block.
    ///
    /// # Errors
    /// The first command that is not understood, or whose setting has no counterpart here.
    pub fn apply(&mut self, shell: &Block) -> Result<(), Problem> {
        for command in shell::commands(&shell.text, shell.line) {
            commands::apply(self, &command).map_err(|refusal| Problem::unsupported(command.line, refusal))?;
        }
        self.settings.switch_off_unused().map_err(|refusal| Problem::unsupported(shell.line, refusal))
    }
}
