// SPDX-License-Identifier: GPL-2.0-only
// A laptop without a link of its own downloads over those of the relays around it, and chooses as many as its target
// needs.
//
//   server, owners' peer ── core ── a link per relay ── relays ══ local links ══ laptop
//
// The devices add no headers, so that the built-in simulator's links are the same: crates/capi/tests/ns3.rs compares.
#pragma once

#include "download.h"

#include "../module/socket.h"

#include "ns3/applications-module.h"
#include "ns3/internet-module.h"

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace selection {

constexpr uint16_t OWNERS_PORT = 9000;
constexpr uint32_t DATAGRAM_BYTES = 1000;
// Packets that wait at each device.
constexpr const char* QUEUE = "59p";

// What the owner of a relay receives, from some time on.
struct Owner {
    uint32_t relay;
    std::string rate;
    double fromS;
};

// A link that changes its rate.
struct Change {
    uint32_t relay;
    std::string rate;
    double atS;
};

struct Setup {
    std::vector<std::string> rates = {"1Mbps", "1.4Mbps", "2Mbps", "3Mbps"};
    // Settings of all agents, and those of single relays instead.
    std::string agents =
        R"({"target": {"bit_rate": "3 Mbit/s"}, "cooperation": {"selection": {"method": "ssrs"}}})";
    std::map<uint32_t, std::string> relayAgents = {};
    std::string sockets = "{}";
    // Packets that wait at each device of the relays' links, and the delay of the local links and their loss towards the
    // laptop.
    std::string queue = QUEUE;
    std::string localDelay = "2ms";
    double localLoss = 0;
    uint16_t localMtu = 1500;
    std::vector<Owner> owners = {};
    std::vector<Change> changes = {};
    double seconds = 30;
    // Whether the server has an agent.
    bool hasSource = false;
    // Whether the owners' TCP is the engine, too.
    bool relaysHaveEngines = false;
};

// The parts between commas.
inline std::vector<std::string> Split(const std::string& text)
{
    std::vector<std::string> parts;
    std::istringstream rest(text);
    for (std::string part; std::getline(rest, part, ',');)
        parts.push_back(part);
    return parts;
}

// "2,500kbps,10": relay 2, 500 kbit/s, from 10 s on.
template <class T>
void Read(const std::string& text, std::vector<T>& into)
{
    if (text == "none")
        return;
    std::istringstream parts(text);
    std::string relay, rate, second;
    std::getline(parts, relay, ',');
    std::getline(parts, rate, ',');
    std::getline(parts, second);
    NS_ABORT_MSG_IF(second.empty(), "write RELAY,RATE,SECOND like 2,500kbps,10 instead of " << text);
    into.push_back({static_cast<uint32_t>(std::stoul(relay)), rate, std::stod(second)});
}

class Network {
public:
    explicit Network(const Setup& setup) : setup(setup)
    {
        ns3::Config::SetDefault("anabranch::Socket::Settings", ns3::StringValue(setup.sockets));
        relays.Create(static_cast<uint32_t>(setup.rates.size()));
        ns3::InternetStackHelper().Install(
            ns3::NodeContainer(ns3::NodeContainer(laptop, relays), ns3::NodeContainer(core, server)));
        serverAddress = Assign(Link(ns3::NodeContainer(core, server), "0bps", "0ms", "1000p")).GetAddress(1);
        for (uint32_t relay = 0; relay < relays.GetN(); relay++) {
            const auto link = Link(ns3::NodeContainer(core.Get(0), relays.Get(relay)), setup.rates[relay], "20ms", setup.queue);
            lentAddresses.push_back(Assign(link).GetAddress(1));
            cellular.Add(link.Get(1));
        }
        ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        anabranch::Install(ns3::NodeContainer(laptop, server));
        if (setup.relaysHaveEngines)
            anabranch::Install(relays);
        destination = anabranch::InstallDestination(laptop.Get(0), setup.agents);
        ns3::Ipv4AddressHelper local("192.168.0.0", "255.255.255.0");
        for (uint32_t relay = 0; relay < relays.GetN(); relay++) {
            const ns3::NodeContainer ends(relays.Get(relay), laptop.Get(0));
            const auto link = Link(ends, "20Mbps", setup.localDelay, "1000p");
            Lose(link.Get(1), setup.localLoss);
            link.Get(0)->SetMtu(setup.localMtu);
            link.Get(1)->SetMtu(setup.localMtu);
            local.Assign(link);
            local.NewNetwork();
            const auto own = setup.relayAgents.find(relay);
            agents.push_back(anabranch::InstallRelay(cellular.Get(relay), link.Get(0), link.Get(1),
                                                     own == setup.relayAgents.end() ? "" : own->second));
        }
        if (setup.hasSource)
            source = anabranch::InstallSource(server.Get(0), laptop);
        AddOwners();
        for (const Change& change : setup.changes)
            ns3::Simulator::Schedule(ns3::Seconds(change.atS), &Network::ChangeRate, this, change);
    }

    // Downloads until the end; returns how many octets have arrived.
    uint64_t Run()
    {
        sending.emplace(server.Get(0));
        download::Client receiving(laptop.Get(0), serverAddress);
        receiving.Connect();
        ns3::Simulator::Stop(ns3::Seconds(setup.seconds));
        ns3::Simulator::Run();
        return receiving.receivedBytes;
    }

    // The server's statistics of the download, once it has begun.
    std::string Statistics() const
    {
        const bool hasBegun = sending && !sending->accepted.empty();
        return hasBegun ? ns3::DynamicCast<anabranch::Socket>(sending->accepted.front())->GetStatistics() : "";
    }

    ns3::Ipv4Address ServerAddress() const { return serverAddress; }
    ns3::Ipv4Address LentBy(uint32_t relay) const { return lentAddresses.at(relay); }
    // Returns the number of a relay.
    uint32_t NumberOf(const ns3::Ptr<ns3::Node>& relay) const { return relay->GetId() - relays.Get(0)->GetId(); }

    ns3::NodeContainer laptop{1}, relays, core{1}, server{1};
    ns3::Ptr<anabranch::Destination> destination;
    std::vector<ns3::Ptr<anabranch::RelayAgent>> agents;
    // Null if the server has none.
    ns3::Ptr<anabranch::Source> source;

private:
    static ns3::NetDeviceContainer Link(const ns3::NodeContainer& ends, const std::string& rate,
                                        const std::string& delay, const std::string& queue)
    {
        ns3::SimpleNetDeviceHelper link;
        link.SetNetDevicePointToPointMode(true);
        // Packets wait at the device alone.
        link.DisableFlowControl();
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::QueueSizeValue(ns3::QueueSize(queue)));
        link.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(rate)));
        link.SetChannelAttribute("Delay", ns3::TimeValue(ns3::Time(delay)));
        return link.Install(ends);
    }

    static void Lose(const ns3::Ptr<ns3::NetDevice>& at, double ratio)
    {
        if (ratio == 0)
            return;
        const auto errors = ns3::CreateObject<ns3::RateErrorModel>();
        errors->SetUnit(ns3::RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(ratio);
        at->SetAttribute("ReceiveErrorModel", ns3::PointerValue(errors));
    }

    ns3::Ipv4InterfaceContainer Assign(const ns3::NetDeviceContainer& ends)
    {
        const ns3::Ipv4InterfaceContainer assigned = address.Assign(ends);
        address.NewNetwork();
        return assigned;
    }

    void AddOwners()
    {
        for (const Owner& owner : setup.owners) {
            const ns3::InetSocketAddress at(lentAddresses.at(owner.relay), OWNERS_PORT);
            ns3::PacketSinkHelper("ns3::UdpSocketFactory", at).Install(relays.Get(owner.relay));
            ns3::OnOffHelper source("ns3::UdpSocketFactory", at);
            source.SetConstantRate(ns3::DataRate(owner.rate), DATAGRAM_BYTES);
            source.Install(server).Start(ns3::Seconds(owner.fromS));
        }
    }

    void ChangeRate(Change change)
    {
        const ns3::Ptr<ns3::Channel> channel = cellular.Get(change.relay)->GetChannel();
        channel->GetDevice(0)->SetAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(change.rate)));
    }

    const Setup setup;
    std::optional<download::Server> sending;
    ns3::Ipv4AddressHelper address{"10.0.0.0", "255.255.255.0"};
    ns3::NetDeviceContainer cellular;
    ns3::Ipv4Address serverAddress;
    std::vector<ns3::Ipv4Address> lentAddresses;
};

} // namespace selection
