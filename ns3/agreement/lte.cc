// SPDX-License-Identifier: GPL-2.0-only
// UEs of one eNB with Table 3.1 of the thesis that receive UDP at a constant rate, or bulk TCP. Measures throughput and
// delay of each UE.

#include "common.h"
#include "models.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <chrono>
#include <map>

using namespace ns3;

namespace {

constexpr uint16_t UDP_PORT = 9;
constexpr uint16_t TCP_PORT = 20;
// 1400 octets of IP.
constexpr uint32_t PAYLOAD_BYTES = 1372;
constexpr uint32_t IP_BYTES = 1400;
constexpr uint32_t SEGMENT_BYTES = 1348;
constexpr uint32_t QUEUE_BYTES = 125000;
constexpr double SETTLED_S = 1.5;

struct Setup {
    std::string name = "lte";
    std::vector<double> distancesM;
    std::vector<double> ratesMbps;
    std::string scheduler = "ns3::TdBetFfMacScheduler";
    std::string fading;
    double fadingWindowS = 0.5;
    double seconds = 10;
    double wireMs = 0;
    uint32_t seed = 1;
    bool tcp = false;
    bool unacknowledged = false;

    double RateMbps(uint32_t ue) const { return ratesMbps[std::min<size_t>(ue, ratesMbps.size() - 1)]; }
};

Setup Parse(int argc, char** argv)
{
    Setup setup;
    std::string distances = "900";
    std::string rates = "20";
    CommandLine command(__FILE__);
    command.AddValue("name", "name of the set-up, repeated in the results", setup.name);
    command.AddValue("distances", "distance of each UE from the eNB, m", distances);
    command.AddValue("rates", "what each UE is sent, Mbit/s of IP; the last counts for all further UEs", rates);
    command.AddValue("scheduler", "type of the MAC scheduler", setup.scheduler);
    command.AddValue("fading", "trace of 10 s and 100 resource blocks, if any (.fad)", setup.fading);
    command.AddValue("fading-window", "after how many seconds each UE jumps to another place of the trace", setup.fadingWindowS);
    command.AddValue("seconds", "measured time after one second of traffic, s", setup.seconds);
    command.AddValue("wire", "delay between server and gateway, ms", setup.wireMs);
    command.AddValue("seed", "run of ns-3's generator", setup.seed);
    command.AddValue("tcp", "bulk TCP instead of UDP", setup.tcp);
    command.AddValue("um", "RLC in unacknowledged mode", setup.unacknowledged);
    command.Parse(argc, argv);
    setup.distancesM = measure::ParseList(distances);
    setup.ratesMbps = measure::ParseList(rates);
    NS_ABORT_MSG_IF(setup.distancesM.empty() || setup.ratesMbps.empty(), "--distances and --rates need a number each");
    return setup;
}

void SetRadioDefaults(const Setup& setup)
{
    const auto mode = setup.unacknowledged ? LteEnbRrc::RLC_UM_ALWAYS : LteEnbRrc::RLC_AM_ALWAYS;
    Config::SetDefault("ns3::LteAmc::AmcModel", EnumValue(LteAmc::PiroEW2010));
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(mode));
    Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(models::SoundingPeriodMs(setup.distancesM.size())));
    Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(QUEUE_BYTES));
    Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(QUEUE_BYTES));
    Config::SetDefault("ns3::LteEnbPhy::TxPower", DoubleValue(30));
    Config::SetDefault("ns3::LteEnbPhy::NoiseFigure", DoubleValue(5));
    Config::SetDefault("ns3::LteUePhy::TxPower", DoubleValue(23));
    Config::SetDefault("ns3::LteUePhy::NoiseFigure", DoubleValue(5));
    Config::SetDefault("ns3::LteEnbNetDevice::DlBandwidth", UintegerValue(50));
    Config::SetDefault("ns3::LteEnbNetDevice::UlBandwidth", UintegerValue(50));
}

void SetTcpDefaults()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4000000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4000000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
}

// A server behind the gateway, and UEs that are attached to the eNB. The helpers must outlive the run.
struct World {
    Ptr<LteHelper> lte;
    Ptr<PointToPointEpcHelper> core;
    NodeContainer server;
    NodeContainer ues;
    Ipv4InterfaceContainer ueAddresses;
    ApplicationContainer sinks;
};

void ConnectServer(const Ptr<Node>& gateway, const Ptr<Node>& server, double wireMs)
{
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("10Gb/s"));
    wire.SetDeviceAttribute("Mtu", UintegerValue(2000));
    wire.SetChannelAttribute("Delay", TimeValue(MilliSeconds(wireMs)));
    const NetDeviceContainer devices = wire.Install(gateway, server);
    Ipv4AddressHelper address;
    address.SetBase("1.0.0.0", "255.0.0.0");
    address.Assign(devices);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(server->GetObject<Ipv4>())->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
}

World Build(const Setup& setup)
{
    auto lte = CreateObject<LteHelper>();
    auto core = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(core);
    lte->SetSchedulerType(setup.scheduler);
    if (!setup.fading.empty())
        models::SetFading(*lte, setup.fading, setup.fadingWindowS);
    World world{lte, core, NodeContainer(1), NodeContainer(setup.distancesM.size()), {}, {}};
    const NodeContainer enb(1);
    models::PlaceInARow(enb, world.ues, setup.distancesM);
    const NetDeviceContainer enbDevices = lte->InstallEnbDevice(enb);
    const NetDeviceContainer ueDevices = lte->InstallUeDevice(world.ues);
    InternetStackHelper internet;
    internet.Install(world.server);
    internet.Install(world.ues);
    ConnectServer(core->GetPgwNode(), world.server.Get(0), setup.wireMs);
    world.ueAddresses = core->AssignUeIpv4Address(ueDevices);
    Ipv4StaticRoutingHelper routing;
    for (uint32_t ue = 0; ue < world.ues.GetN(); ue++) {
        const auto ip = world.ues.Get(ue)->GetObject<Ipv4>();
        routing.GetStaticRouting(ip)->SetDefaultRoute(core->GetUeDefaultGatewayAddress(), 1);
        lte->Attach(ueDevices.Get(ue), enbDevices.Get(0));
    }
    return world;
}

void SendUdp(const World& world, uint32_t ue, double rateMbps)
{
    UdpClientHelper client(world.ueAddresses.GetAddress(ue), UDP_PORT);
    client.SetAttribute("PacketSize", UintegerValue(PAYLOAD_BYTES));
    client.SetAttribute("MaxPackets", UintegerValue(0xffffffff));
    client.SetAttribute("Interval", TimeValue(Seconds(IP_BYTES * 8e-6 / rateMbps)));
    client.Install(world.server.Get(0)).Start(Seconds(0.5 + 0.00013 * ue));
}

void SendTcp(const World& world, uint32_t ue)
{
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(world.ueAddresses.GetAddress(ue), TCP_PORT));
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    bulk.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
    bulk.Install(world.server.Get(0)).Start(Seconds(0.5 + 0.01 * ue));
}

void InstallTraffic(World& world, const Setup& setup)
{
    const std::string factory = setup.tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
    const uint16_t port = setup.tcp ? TCP_PORT : UDP_PORT;
    PacketSinkHelper sink(factory, InetSocketAddress(Ipv4Address::GetAny(), port));
    world.sinks = sink.Install(world.ues);
    world.sinks.Start(Seconds(0));
    for (uint32_t ue = 0; ue < world.ues.GetN(); ue++) {
        if (setup.tcp)
            SendTcp(world, ue);
        else if (setup.RateMbps(ue) > 0)
            SendUdp(world, ue, setup.RateMbps(ue));
    }
}

// Payload octets that each UE has received so far.
std::vector<uint64_t> Received(const World& world)
{
    std::vector<uint64_t> octets;
    for (uint32_t ue = 0; ue < world.sinks.GetN(); ue++)
        octets.push_back(DynamicCast<PacketSink>(world.sinks.Get(ue))->GetTotalRx());
    return octets;
}

// Mean delay of the packets to each UE that a flow monitor saw leave and arrive.
std::vector<double> DelaysMs(FlowMonitorHelper& monitor, const World& world)
{
    const auto classifier = DynamicCast<Ipv4FlowClassifier>(monitor.GetClassifier());
    std::map<Ipv4Address, FlowMonitor::FlowStats> flows;
    for (const auto& [id, stats] : monitor.GetMonitor()->GetFlowStats())
        flows[classifier->FindFlow(id).destinationAddress] = stats;
    std::vector<double> delaysMs;
    for (uint32_t ue = 0; ue < world.ues.GetN(); ue++) {
        const FlowMonitor::FlowStats& flow = flows[world.ueAddresses.GetAddress(ue)];
        delaysMs.push_back(flow.rxPackets == 0 ? 0 : flow.delaySum.GetSeconds() * 1e3 / flow.rxPackets);
    }
    return delaysMs;
}

} // namespace

int main(int argc, char** argv)
{
    const Setup setup = Parse(argc, argv);
    RngSeedManager::SetRun(setup.seed);
    SetRadioDefaults(setup);
    SetTcpDefaults();
    World world = Build(setup);
    InstallTraffic(world, setup);
    FlowMonitorHelper monitor;
    std::vector<uint64_t> before;
    Simulator::Schedule(Seconds(SETTLED_S), [&] {
        before = Received(world);
        monitor.Install(NodeContainer(world.server, world.ues));
    });
    Simulator::Stop(Seconds(SETTLED_S + setup.seconds));
    const auto began = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
    const std::vector<uint64_t> after = Received(world);
    const std::vector<double> delaysMs = DelaysMs(monitor, world);
    // Headers of IP and UDP, or of IP and TCP with its timestamps.
    const double headers = setup.tcp ? double(IP_BYTES) / SEGMENT_BYTES : double(IP_BYTES) / PAYLOAD_BYTES;
    for (uint32_t ue = 0; ue < setup.distancesM.size(); ue++) {
        measure::JsonLine()
            .AddText("setup", setup.name)
            .Add("seed", setup.seed)
            .Add("ue", ue)
            .Add("distance_m", setup.distancesM[ue])
            .Add("ip_mbps", (after[ue] - before[ue]) * headers * 8e-6 / setup.seconds)
            .Add("delay_ms", delaysMs[ue])
            .Add("wall_s", wall.count());
    }
    Simulator::Destroy();
}
