//! `anabranch peers`: the devices paired with this one.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use daemon::store::{Peers, Store};

use crate::arguments::{self, PeersOrder};
use crate::commands::keys::Running;
use crate::console;
use crate::failure::Failure;

/// Lists the devices, or removes one.
pub fn peers(arguments: &arguments::Peers) -> Result<(), Failure> {
    let done = list_or_remove(arguments);
    // Also if a name is not found: a daemon with other keys may know it.
    for hint in Running::all().iter().filter_map(|running| running.hint(&arguments.state)) {
        console::complain(&format!("{hint}\n"))?;
    }
    done
}

fn list_or_remove(arguments: &arguments::Peers) -> Result<(), Failure> {
    let store = Store::at(&arguments.state);
    if let Some(PeersOrder::Remove(remove)) = &arguments.order {
        if arguments.json {
            return Err(Failure::Input(
                "--json applies only to the list of devices: leave it out with `remove`".into(),
            ));
        }
        // This does not create the folder if it is absent.
        store.peers()?.remove(&remove.name)?;
        store.change_peers(|peers| peers.remove(&remove.name))?;
        return Ok(console::print(&format!("{} is no longer paired\n", remove.name))?);
    }
    let peers = store.peers()?;
    Ok(console::print(&if arguments.json { peers.text() } else { describe(&peers) })?)
}

fn describe(peers: &Peers) -> String {
    if peers.relays.is_empty() && peers.destinations.is_empty() {
        return "no device is paired with this one: run `anabranch relay --pair` on the device that lends its link, \
                and `anabranch join --pair` on the other\n"
            .into();
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["device", "role", "address", "key"]);
    // Enough of the key to compare it by eye; --json prints all of it.
    let short = |key: String| key.chars().take(16).collect::<String>();
    for relay in &peers.relays {
        table.add_row([
            relay.name.to_string(),
            "lends to this one".into(),
            relay.address.to_string(),
            short(relay.key.to_string()),
        ]);
    }
    for destination in &peers.destinations {
        let cells = [
            destination.name.to_string(),
            "uses this one's link".into(),
            "–".into(),
            short(destination.key.to_string()),
        ];
        table.add_row(cells);
    }
    format!("{table}\n")
}
