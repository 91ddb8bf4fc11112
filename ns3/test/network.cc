// SPDX-License-Identifier: GPL-2.0-only
#include "network.h"

#include "case.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

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

Network::Network(std::initializer_list<Path> paths)
{
    hosts.Create(2);
    InternetStackHelper().Install(hosts);
    for (const Path& path : paths) {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(path.rate));
        link.SetChannelAttribute("Delay", StringValue(path.delay));
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(PACKETS, path.queuePackets)));
        devices.push_back(link.Install(hosts));
        const std::string subnet = "10.0." + std::to_string(devices.size() - 1) + ".0";
        Ipv4AddressHelper(subnet.c_str(), "255.255.255.0").Assign(devices.back());
        TrafficControlHelper().Uninstall(devices.back());
        if (path.loss > 0)
            Lose(devices.back().Get(1), path.loss);
    }
}

Ipv4Address Network::Address(uint32_t host, uint32_t path) const
{
    const std::string text = "10.0." + std::to_string(path) + "." + std::to_string(host + 1);
    return Ipv4Address(text.c_str());
}

void Network::Cut(uint32_t path) const
{
    for (uint32_t host = 0; host < 2; host++) {
        const Ptr<Ipv4> ipv4 = hosts.Get(host)->GetObject<Ipv4>();
        ipv4->SetDown(ipv4->GetInterfaceForDevice(devices[path].Get(host)));
    }
}

void Network::Mend(uint32_t path) const
{
    for (uint32_t host = 0; host < 2; host++) {
        const Ptr<Ipv4> ipv4 = hosts.Get(host)->GetObject<Ipv4>();
        ipv4->SetUp(ipv4->GetInterfaceForDevice(devices[path].Get(host)));
    }
}

Stream& Send(const Network& network, uint64_t bytes, const std::string& from, const std::string& to, uint16_t port)
{
    static std::list<Stream> streams;
    const InetSocketAddress at(network.Address(1, 0), port);
    PacketSinkHelper sink(to, InetSocketAddress(Ipv4Address::GetAny(), port));
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
