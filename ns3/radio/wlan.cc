// SPDX-License-Identifier: GPL-2.0-only
#include "wlan.h"

#include "../agreement/models.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

namespace radio {

namespace {

constexpr double RADIUS_M = 2;

NetDeviceContainer InstallWifi(const NodeContainer& nodes, const WlanSettings& settings)
{
    // Packets wait as long as there is room, as in the built-in channel.
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(PACKETS, settings.queuePackets)));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    models::SetRate(wifi, settings.rateMbps, settings.rtsThresholdBytes);
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    return wifi.Install(phy, mac, nodes);
}

} // namespace

Wlan::Wlan(const WlanSettings& settings, Listener* listener) : nodes(settings.stations)
{
    models::PlaceAround(nodes, RADIUS_M);
    const NetDeviceContainer devices = InstallWifi(nodes, settings);
    InternetStackHelper().Install(nodes);
    const Ipv4InterfaceContainer interfaces = Ipv4AddressHelper("10.1.0.0", "255.255.0.0").Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    // ARP would have to get through the channel, so every station knows every address in advance.
    NeighborCacheHelper().PopulateNeighborCache();
    for (uint32_t station = 0; station < nodes.GetN(); station++) {
        addresses.push_back(interfaces.GetAddress(station));
        sockets.push_back(OpenSocket(nodes.Get(station), 'w', station, listener));
    }
}

void Wlan::Send(uint32_t from, uint32_t to, uint64_t number, uint32_t wireBytes)
{
    sockets.at(from)->SendTo(MakePacket(from, number, wireBytes), 0, InetSocketAddress(addresses.at(to), PORT));
}

} // namespace radio
