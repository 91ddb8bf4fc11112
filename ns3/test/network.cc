// SPDX-License-Identifier: GPL-2.0-only
#include "network.h"

#include "case.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <list>

using namespace ns3;

namespace test {

namespace {

void Lose(Ptr<NetDevice> at, double ratio)
{
    const auto errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(ratio);
    DynamicCast<PointToPointNetDevice>(at)->SetReceiveErrorModel(errors);
}

void NoteArrival(Stream* stream, Ptr<const Packet>, const ns3::Address&)
{
    stream->lastAtS = Simulator::Now().GetSeconds();
}

} // namespace

Network::Network(std::initializer_list<Path> of) : paths(of)
{
    InternetStackHelper stack;
    stack.SetIpv4StackInstall(
        std::any_of(paths.begin(), paths.end(), [](const Path& path) { return path.families & IPV4; }));
    hosts.Create(2);
    stack.Install(hosts);
    for (const Path& path : paths) {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(path.rate));
        link.SetChannelAttribute("Delay", StringValue(path.delay));
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(PACKETS, path.queuePackets)));
        devices.push_back(link.Install(hosts));
        Assign(static_cast<uint32_t>(devices.size() - 1));
        if (path.loss > 0)
            Lose(devices.back().Get(1), path.loss);
    }
}

void Network::Assign(uint32_t path) const
{
    const std::string subnet = "10.0." + std::to_string(path) + ".0";
    if (paths[path].families & IPV4) {
        Ipv4AddressHelper(subnet.c_str(), "255.255.255.0").Assign(devices[path]);
        // This helper adds a queue above the device.
        TrafficControlHelper().Uninstall(devices[path]);
    }
    for (uint32_t host = 0; host < 2 && paths[path].families & IPV6; host++) {
        const Ptr<Ipv6> ipv6 = hosts.Get(host)->GetObject<Ipv6>();
        ipv6->SetUp(ipv6->AddInterface(devices[path].Get(host)));
        Assign6(host, path);
    }
}

void Network::Assign6(uint32_t host, uint32_t path) const
{
    const Ptr<Ipv6> ipv6 = hosts.Get(host)->GetObject<Ipv6>();
    const int32_t interface = ipv6->GetInterfaceForDevice(devices[path].Get(host));
    ipv6->AddAddress(interface, Ipv6InterfaceAddress(Address6(host, path), Ipv6Prefix(64)));
}

Ipv4Address Network::Address(uint32_t host, uint32_t path) const
{
    const std::string text = "10.0." + std::to_string(path) + "." + std::to_string(host + 1);
    return Ipv4Address(text.c_str());
}

Ipv6Address Network::Address6(uint32_t host, uint32_t path) const
{
    const std::string text = "2001:1:" + std::to_string(path) + "::" + std::to_string(host + 1);
    return Ipv6Address(text.c_str());
}

void Network::Cut(uint32_t path) const
{
    for (uint32_t host = 0; host < 2; host++) {
        const Ptr<Ipv4> ipv4 = hosts.Get(host)->GetObject<Ipv4>();
        const Ptr<Ipv6> ipv6 = hosts.Get(host)->GetObject<Ipv6>();
        if (paths[path].families & IPV4)
            ipv4->SetDown(ipv4->GetInterfaceForDevice(devices[path].Get(host)));
        if (paths[path].families & IPV6)
            ipv6->SetDown(ipv6->GetInterfaceForDevice(devices[path].Get(host)));
    }
}

void Network::Mend(uint32_t path) const
{
    for (uint32_t host = 0; host < 2; host++) {
        const Ptr<Ipv4> ipv4 = hosts.Get(host)->GetObject<Ipv4>();
        const Ptr<Ipv6> ipv6 = hosts.Get(host)->GetObject<Ipv6>();
        if (paths[path].families & IPV4)
            ipv4->SetUp(ipv4->GetInterfaceForDevice(devices[path].Get(host)));
        if (paths[path].families & IPV6) {
            ipv6->SetUp(ipv6->GetInterfaceForDevice(devices[path].Get(host)));
            Assign6(host, path);
        }
    }
}

Stream& Send(const Network& network, uint64_t bytes, const std::string& from, const std::string& to, uint16_t port)
{
    static std::list<Stream> streams;
    const bool isIpv4 = network.paths[0].families & IPV4;
    const ns3::Address at = isIpv4 ? ns3::Address(InetSocketAddress(network.Address(1, 0), port))
                                   : ns3::Address(Inet6SocketAddress(network.Address6(1, 0), port));
    PacketSinkHelper sink(to, isIpv4 ? ns3::Address(InetSocketAddress(Ipv4Address::GetAny(), port))
                                     : ns3::Address(Inet6SocketAddress(Ipv6Address::GetAny(), port)));
    BulkSendHelper source(from, at);
    source.SetAttribute("MaxBytes", UintegerValue(bytes));
    source.SetAttribute("SendSize", UintegerValue(1400));
    source.Install(network.hosts.Get(0));
    Stream& stream = streams.emplace_back();
    stream.sink = DynamicCast<PacketSink>(sink.Install(network.hosts.Get(1)).Get(0));
    stream.sink->TraceConnectWithoutContext("Rx", MakeBoundCallback(&NoteArrival, &stream));
    return stream;
}

double Number(const std::string& json, const std::string& name)
{
    const std::string key = "\"" + name + "\":";
    const size_t at = json.find(key);
    if (at == std::string::npos)
        Fail(__FILE__, __LINE__, "no " + name + " in " + json);
    return std::stod(json.substr(at + key.size()));
}

size_t Count(const std::string& all, const std::string& text)
{
    size_t count = 0;
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + text.size()))
        count++;
    return count;
}

} // namespace test
