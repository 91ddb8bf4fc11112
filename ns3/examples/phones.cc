// SPDX-License-Identifier: GPL-2.0-only
// A laptop downloads over its own LTE link and those of phones on its Wi-Fi; or chooses among the phones for a target.
#include "phones.h"

namespace {

void Print(const anabranch::Migration& migration)
{
    std::cout << ns3::Simulator::Now().GetMilliSeconds() << " ms: " << migration.to.GetN() << " phones offer "
              << migration.offered << " (" << anabranch::WordsOf(migration.cause) << ')' << std::endl;
}

void Watch(ns3::Ptr<anabranch::Destination> laptop)
{
    laptop->TraceConnectWithoutContext("Migration", ns3::MakeCallback(&Print));
}

} // namespace

int main(int argc, char** argv)
{
    phones::Setup setup;
    std::string target;
    ns3::CommandLine command(__FILE__);
    command.AddValue("phones", "phones that lend their LTE link", setup.phones);
    command.AddValue("distance", "distance of the devices from the eNBs, m", setup.distanceM);
    command.AddValue("seconds", "time of the download, s", setup.seconds);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"olia\"}", setup.settings);
    command.AddValue("target", "bit rate for which the laptop chooses among the phones, e.g. 4Mbit/s", target);
    command.Parse(argc, argv);
    setup.watch = Watch;
    if (!target.empty())
        setup.agents = R"({"target": {"bit_rate": ")" + target +
                       R"("}, "cooperation": {"selection": {"method": "ssrs", "period": "1 s"}}})";
    std::cout << setup.phones << " phones: " << phones::Run(setup) << " Mbit/s" << std::endl;
}
