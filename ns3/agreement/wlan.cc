// SPDX-License-Identifier: GPL-2.0-only
// Saturated stations of IEEE 802.11a in ad hoc mode that all send UDP to one root. Measures payload throughput at the
// root.

#include "common.h"
#include "models.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <chrono>

using namespace ns3;

namespace {

constexpr uint16_t PORT = 9;
// 1428 octets of IP.
constexpr uint32_t PAYLOAD_BYTES = 1400;
// By this time addresses are resolved and queues are full.
constexpr double SETTLED_S = 1.0;

struct Setup {
    uint32_t stations = 1;
    uint32_t rateMbps = 54;
    double seconds = 5;
    double radiusM = 2;
    uint32_t seed = 1;
    std::string pcap;
};

Setup Parse(int argc, char** argv)
{
    Setup setup;
    CommandLine command(__FILE__);
    command.AddValue("stations", "saturated stations", setup.stations);
    command.AddValue("rate", "rate of data frames, Mbit/s", setup.rateMbps);
    command.AddValue("seconds", "measured time after one second to settle, s", setup.seconds);
    command.AddValue("radius", "distance of the stations from the root, m", setup.radiusM);
    command.AddValue("seed", "run of ns-3's generator", setup.seed);
    command.AddValue("pcap", "prefix of captures, if any", setup.pcap);
    command.Parse(argc, argv);
    return setup;
}

NetDeviceContainer InstallWifi(const NodeContainer& nodes, const Setup& setup)
{
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    models::SetRate(wifi, setup.rateMbps, 2200);
    YansWifiChannelHelper channel = YansWifiChannelHelper::Default();
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    if (!setup.pcap.empty())
        phy.EnablePcap(setup.pcap, devices.Get(0), true);
    return devices;
}

// ARP would have to get through a saturated channel, so every station knows every address in advance.
Ipv4InterfaceContainer InstallInternet(const NodeContainer& nodes, const NetDeviceContainer& devices)
{
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper address;
    address.SetBase("10.1.1.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = address.Assign(devices);
    NeighborCacheHelper().PopulateNeighborCache();
    return interfaces;
}

Ptr<PacketSink> InstallTraffic(const NodeContainer& nodes, Ipv4Address root, const Setup& setup)
{
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    ApplicationContainer sinks = sink.Install(nodes.Get(0));
    sinks.Start(Seconds(0));
    // Twice what the channel could carry without any overhead: queues never empty.
    const double offeredBps = 2e6 * setup.rateMbps / setup.stations;
    UdpClientHelper client(root, PORT);
    client.SetAttribute("PacketSize", UintegerValue(PAYLOAD_BYTES));
    client.SetAttribute("MaxPackets", UintegerValue(0xffffffff));
    client.SetAttribute("Interval", TimeValue(Seconds(PAYLOAD_BYTES * 8 / offeredBps)));
    for (uint32_t station = 1; station < nodes.GetN(); station++)
        client.Install(nodes.Get(station)).Start(Seconds(0.1 + 0.00037 * station));
    return DynamicCast<PacketSink>(sinks.Get(0));
}

// Payload octets that reach the root in the measured time.
uint64_t Measure(const Ptr<PacketSink>& root, double seconds)
{
    uint64_t before = 0;
    Simulator::Schedule(Seconds(SETTLED_S), [&] { before = root->GetTotalRx(); });
    Simulator::Stop(Seconds(SETTLED_S + seconds));
    Simulator::Run();
    return root->GetTotalRx() - before;
}

} // namespace

int main(int argc, char** argv)
{
    const Setup setup = Parse(argc, argv);
    RngSeedManager::SetRun(setup.seed);
    NodeContainer nodes(setup.stations + 1);
    models::PlaceAround(nodes, setup.radiusM);
    const NetDeviceContainer devices = InstallWifi(nodes, setup);
    const Ipv4InterfaceContainer interfaces = InstallInternet(nodes, devices);
    const Ptr<PacketSink> root = InstallTraffic(nodes, interfaces.GetAddress(0), setup);
    const auto began = std::chrono::steady_clock::now();
    const uint64_t octets = Measure(root, setup.seconds);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
    measure::JsonLine()
        .AddText("setup", "wlan")
        .Add("rate_mbps", setup.rateMbps)
        .Add("stations", setup.stations)
        .Add("seed", setup.seed)
        .Add("seconds", setup.seconds)
        .Add("payload_mbps", octets * 8e-6 / setup.seconds)
        .Add("wall_s", wall.count());
    Simulator::Destroy();
}
