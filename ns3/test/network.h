// SPDX-License-Identifier: GPL-2.0-only
// Two hosts with one or more point-to-point paths between them, and streams over them.
#pragma once

#include "ns3/ipv6-address.h"
#include "ns3/net-device-container.h"
#include "ns3/node-container.h"
#include "ns3/packet-sink.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace test {

constexpr uint16_t PORT = 5001;

enum Families { IPV4 = 1, IPV6 = 2, BOTH = IPV4 | IPV6 };

struct Path {
    const char* rate;
    const char* delay;
    // Share of packets that are lost towards the sink.
    double loss = 0;
    uint32_t queuePackets = 100;
    Families families = IPV4;
};

// Host 0 sends, host 1 receives. Path i has addresses 10.0.i.1 and 10.0.i.2, 2001:1:i::1 and 2001:1:i::2. Hosts have
// IPv4 if a path has, and always IPv6.
struct Network {
    Network(std::initializer_list<Path> paths);
    Network(const Network&) = delete;
    ns3::Ipv4Address Address(uint32_t host, uint32_t path) const;
    ns3::Ipv6Address Address6(uint32_t host, uint32_t path) const;
    // Stops both interfaces of a path, or starts them: with their addresses of IPv6, which ns-3 forgets.
    void Cut(uint32_t path) const;
    void Mend(uint32_t path) const;

    ns3::NodeContainer hosts;
    std::vector<ns3::NetDeviceContainer> devices;
    std::vector<Path> paths;

private:
    void Assign(uint32_t path) const;
    void Assign6(uint32_t host, uint32_t path) const;
};

struct Stream {
    ns3::Ptr<ns3::PacketSink> sink;
    // When its last octet arrived so far, s.
    double lastAtS = 0;
};

// Sends `bytes` from host 0 to a sink at host 1 from the beginning on, to the first address of the first path; both use
// these socket factories. Zero octets: for ever. The result must live as long as the simulation.
Stream& Send(const Network& network, uint64_t bytes, const std::string& from, const std::string& to,
             uint16_t port = PORT);

// Returns the number behind the first `"name":` in a JSON text; ends the case if there is none.
double Number(const std::string& json, const std::string& name);
// Returns how often `text` occurs.
size_t Count(const std::string& all, const std::string& text);

} // namespace test
