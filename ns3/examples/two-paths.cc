// SPDX-License-Identifier: GPL-2.0-only
// A client downloads over two paths. Prints what has arrived, every 100 ms.
//
//          10 Mbit/s, 10 ms
//   client ════════════════ router ── server
//          5 Mbit/s, 20 ms
//
// The devices add no headers, so that the built-in simulator's links are the same: crates/capi/tests/ns3.rs compares.
#include "download.h"

#include "ns3/internet-module.h"

using namespace ns3;

namespace {

void Print(const download::Client* client)
{
    std::cout << Simulator::Now().GetMilliSeconds() << ' ' << client->receivedBytes << std::endl;
    Simulator::Schedule(MilliSeconds(100), &Print, client);
}

NetDeviceContainer Link(const NodeContainer& ends, const std::string& rate, const std::string& delay,
                        const std::string& queue)
{
    SimpleNetDeviceHelper link;
    link.SetNetDevicePointToPointMode(true);
    // Packets wait at the device alone.
    link.DisableFlowControl();
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(queue)));
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetChannelAttribute("Delay", TimeValue(Time(delay)));
    return link.Install(ends);
}

} // namespace

int main(int argc, char** argv)
{
    std::string queue = "59p";
    std::string settings = "{}";
    double seconds = 10;
    CommandLine command(__FILE__);
    command.AddValue("queue", "packets that wait at each device, besides the one that is being sent", queue);
    command.AddValue("seconds", "time of the download, s", seconds);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"olia\"}", settings);
    command.Parse(argc, argv);
    Config::SetDefault("anabranch::Socket::Settings", StringValue(settings));

    const NodeContainer client(1), router(1), server(1);
    InternetStackHelper().Install(NodeContainer(client, router, server));
    Ipv4AddressHelper address("10.0.0.0", "255.255.255.0");
    address.Assign(Link(NodeContainer(client, router), "10Mbps", "10ms", queue));
    address.NewNetwork();
    address.Assign(Link(NodeContainer(client, router), "5Mbps", "20ms", queue));
    address.NewNetwork();
    const Ipv4InterfaceContainer far = address.Assign(Link(NodeContainer(router, server), "0bps", "0ms", "1000p"));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    anabranch::Install(NodeContainer(client, server));

    const download::Server sending(server.Get(0));
    download::Client receiving(client.Get(0), far.GetAddress(1));
    receiving.Connect();
    Simulator::Schedule(MilliSeconds(100), &Print, &receiving);
    Simulator::Stop(Seconds(seconds) + NanoSeconds(1));
    Simulator::Run();
    Simulator::Destroy();
}
