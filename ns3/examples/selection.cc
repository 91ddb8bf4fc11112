// SPDX-License-Identifier: GPL-2.0-only
// A laptop chooses among the relays around it for a target bit rate. Prints each change of the set: when, why, which
// relays are wanted, and what they offer.
#include "selection.h"

using namespace ns3;

namespace {

void Print(const selection::Network* network, const anabranch::Migration& migration)
{
    std::cout << Simulator::Now().GetMilliSeconds() << " ms  " << anabranch::WordsOf(migration.cause) << ":";
    for (uint32_t relay = 0; relay < migration.to.GetN(); relay++)
        std::cout << ' ' << network->NumberOf(migration.to.Get(relay));
    std::cout << "  " << migration.offered.GetBitRate() << std::endl;
}

} // namespace

int main(int argc, char** argv)
{
    selection::Setup setup;
    std::string rates, owner = "3,1500kbps,10.5", change = "2,500kbps,20.5";
    CommandLine command(__FILE__);
    command.AddValue("rates", "rates of the relays' links, e.g. 1Mbps,2Mbps", rates);
    command.AddValue("agents", "settings of the agents without spaces", setup.agents);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"olia\"}", setup.sockets);
    command.AddValue("owner", "a relay, what its owner receives, and from which second on; or none", owner);
    command.AddValue("change", "a relay, the new rate of its link, and from which second on; or none", change);
    command.AddValue("seconds", "time of the download, s", setup.seconds);
    command.Parse(argc, argv);
    if (!rates.empty())
        setup.rates = selection::Split(rates);
    selection::Read(owner, setup.owners);
    selection::Read(change, setup.changes);

    selection::Network network(setup);
    network.destination->TraceConnectWithoutContext("Migration", MakeBoundCallback(&Print, &network));
    const uint64_t bytes = network.Run();
    std::cout << bytes * 8e-6 / setup.seconds << " Mbit/s" << std::endl;
    Simulator::Destroy();
}
