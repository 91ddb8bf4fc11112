// SPDX-License-Identifier: GPL-2.0-only
// A laptop downloads over its own LTE link and those of phones around it, which it reaches by Wi-Fi. Each device has a
// carrier of its own, as with contracts of different operators.
//
//   server ── core network ── eNBs ~~ LTE ~~ laptop ~~ Wi-Fi ~~ phones ~~ LTE ~~ eNBs
#pragma once

#include "download.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/wifi-module.h"

#include <functional>

namespace phones {

// EARFCNs of band 1, 5 MHz apart.
constexpr uint32_t CARRIER_FIRST = 50, CARRIER_STEP = 50;
constexpr uint32_t RESOURCE_BLOCKS = 25;
constexpr double ATTACHED_S = 0.5;

struct Setup {
    uint32_t phones = 2;
    double distanceM = 3000;
    double seconds = 5;
    std::string settings = "{}";
    // Settings of agents, by which the laptop chooses among the phones; without them, it uses all links and its own.
    std::string agents = "";
    // Gets the agent of the laptop before the run.
    std::function<void(ns3::Ptr<anabranch::Destination>)> watch = {};
};

// The eNBs share a mast, the devices a table.
inline void Place(const ns3::NodeContainer& enbs, const ns3::NodeContainer& devices, double distanceM)
{
    auto positions = ns3::CreateObject<ns3::ListPositionAllocator>();
    for (uint32_t enb = 0; enb < enbs.GetN(); enb++)
        positions->Add(ns3::Vector(0, enb, 30));
    for (uint32_t device = 0; device < devices.GetN(); device++)
        positions->Add(ns3::Vector(distanceM, 0.5 * device, 1));
    ns3::MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(enbs);
    mobility.Install(devices);
}

// Returns the LTE devices of both sides, in pairs.
inline std::pair<ns3::NetDeviceContainer, ns3::NetDeviceContainer>
InstallLte(ns3::LteHelper& lte, const ns3::NodeContainer& enbs, const ns3::NodeContainer& devices)
{
    ns3::NetDeviceContainer cells, ues;
    lte.SetEnbDeviceAttribute("DlBandwidth", ns3::UintegerValue(RESOURCE_BLOCKS));
    lte.SetEnbDeviceAttribute("UlBandwidth", ns3::UintegerValue(RESOURCE_BLOCKS));
    for (uint32_t number = 0; number < enbs.GetN(); number++) {
        const uint32_t down = CARRIER_FIRST + CARRIER_STEP * number, up = 18000 + down;
        lte.SetEnbDeviceAttribute("DlEarfcn", ns3::UintegerValue(down));
        lte.SetEnbDeviceAttribute("UlEarfcn", ns3::UintegerValue(up));
        lte.SetUeDeviceAttribute("DlEarfcn", ns3::UintegerValue(down));
        cells.Add(lte.InstallEnbDevice(enbs.Get(number)));
        ues.Add(lte.InstallUeDevice(devices.Get(number)));
    }
    return {cells, ues};
}

inline ns3::NetDeviceContainer InstallWifi(const ns3::NodeContainer& devices)
{
    ns3::YansWifiPhyHelper phy;
    phy.SetChannel(ns3::YansWifiChannelHelper::Default().Create());
    ns3::WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    ns3::WifiHelper wifi;
    wifi.SetStandard(ns3::WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", ns3::StringValue("OfdmRate54Mbps"),
                                 "ControlMode", ns3::StringValue("OfdmRate24Mbps"));
    const ns3::NetDeviceContainer stations = wifi.Install(phy, mac, devices);
    ns3::Ipv4AddressHelper("192.168.1.0", "255.255.255.0").Assign(stations);
    return stations;
}

// Connects the server to the gateway of the core network; returns its address.
inline ns3::Ipv4Address ConnectServer(ns3::Ptr<ns3::Node> gateway, ns3::Ptr<ns3::Node> server)
{
    ns3::PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", ns3::StringValue("1Gbps"));
    wire.SetChannelAttribute("Delay", ns3::StringValue("10ms"));
    const ns3::Ipv4InterfaceContainer ends =
        ns3::Ipv4AddressHelper("198.51.100.0", "255.255.255.0").Assign(wire.Install(gateway, server));
    ns3::Ipv4StaticRoutingHelper()
        .GetStaticRouting(server->GetObject<ns3::Ipv4>())
        ->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
    return ends.GetAddress(1);
}

// Gives the devices addresses and routes, and attaches each to its eNB.
inline void Attach(ns3::LteHelper& lte, ns3::EpcHelper& core, const ns3::NetDeviceContainer& cells,
                   const ns3::NetDeviceContainer& ues)
{
    core.AssignUeIpv4Address(ues);
    for (uint32_t number = 0; number < ues.GetN(); number++) {
        const auto ipv4 = ues.Get(number)->GetNode()->GetObject<ns3::Ipv4>();
        const int32_t interface = ipv4->GetInterfaceForDevice(ues.Get(number));
        ns3::Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->SetDefaultRoute(core.GetUeDefaultGatewayAddress(),
                                                                               interface);
        lte.Attach(ues.Get(number), cells.Get(number));
    }
}

// Runs the download; returns its rate in Mbit/s.
inline double Run(const Setup& setup)
{
    ns3::Config::SetDefault("ns3::LteEnbPhy::TxPower", ns3::DoubleValue(30));
    ns3::Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", ns3::UintegerValue(100 * 1500));
    ns3::Config::SetDefault("anabranch::Socket::Settings", ns3::StringValue(setup.settings));
    auto lte = ns3::CreateObject<ns3::LteHelper>();
    auto core = ns3::CreateObject<ns3::PointToPointEpcHelper>();
    lte->SetEpcHelper(core);
    const ns3::NodeContainer server(1), enbs(1 + setup.phones), devices(1 + setup.phones);
    Place(enbs, devices, setup.distanceM);
    const auto [cells, ues] = InstallLte(*lte, enbs, devices);
    ns3::InternetStackHelper internet;
    internet.Install(server);
    internet.Install(devices);
    const ns3::Ipv4Address serverAddress = ConnectServer(core->GetPgwNode(), server.Get(0));
    Attach(*lte, *core, cells, ues);
    const ns3::NetDeviceContainer stations = InstallWifi(devices);

    anabranch::Install(server);
    anabranch::Install(devices.Get(0));
    const bool hasAgents = !setup.agents.empty();
    if (hasAgents) {
        const auto laptop = anabranch::InstallDestination(devices.Get(0), setup.agents);
        if (setup.watch)
            setup.watch(laptop);
    }
    for (uint32_t phone = 1; phone < devices.GetN(); phone++) {
        if (hasAgents)
            anabranch::InstallRelay(ues.Get(phone), stations.Get(phone), stations.Get(0));
        else
            anabranch::Lend(ues.Get(phone), stations.Get(phone), stations.Get(0));
    }

    const download::Server sending(server.Get(0));
    download::Client receiving(devices.Get(0), serverAddress);
    // The devices attach first.
    ns3::Simulator::Schedule(ns3::Seconds(ATTACHED_S), &download::Client::Connect, &receiving);
    ns3::Simulator::Stop(ns3::Seconds(ATTACHED_S + setup.seconds));
    ns3::Simulator::Run();
    const double rate = receiving.receivedBytes * 8e-6 / setup.seconds;
    ns3::Simulator::Destroy();
    return rate;
}

} // namespace phones
