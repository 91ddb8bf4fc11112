// SPDX-License-Identifier: GPL-2.0-only
// The engine of a node, in the place of ns-3's TCP.
#pragma once

#include "agent.h"
#include "anabranch.h"
#include "layer.h"
#include "subflows.h"

#include "ns3/event-id.h"
#include "ns3/ip-l4-protocol.h"
#include "ns3/random-variable-stream.h"
#include "ns3/traced-callback.h"

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace anabranch {

class Socket;

// Passes TCP packets between the IPv4 and IPv6 of a node and the engine, the time of the simulation to the engine, and the
// engine's events to the sockets. `Install` (install.h) attaches one to a node.
//
// Between two turns of the engine, sockets and packets are at the same time; a turn goes on until there is nothing to do.
//
// A packet leaves by the device that has its source address: each subflow stays on its path. The node needs a route to
// the destination by that device, unless it is point-to-point, or a next hop for that address (`SetNextHop`). A packet
// without a route is dropped, and the trace source `NoRoute`, or `NoRoute6`, reports it.
class Host : public ns3::IpL4Protocol {
public:
    static ns3::TypeId GetTypeId();
    Host();
    ~Host() override;

    // Sends packets from `source` to `nextHop`, whatever the routes say. For addresses that a relay lends.
    void SetNextHop(ns3::Ipv4Address source, ns3::Ipv4Address nextHop);
    void SetNextHop(ns3::Ipv6Address source, ns3::Ipv6Address nextHop);
    // Sends packets to `destination` that come from elsewhere, and pass the agent of a relay, by this route.
    void SetOnward(ns3::Ipv4Address destination, ns3::Ptr<ns3::Ipv4Route> route);
    // Marks an address whose subflows are backups (RFC 8684 section 3.3.8). Before the first connection.
    void SetBackup(ns3::Ipv4Address address);
    void SetBackup(ns3::Ipv6Address address);
    // Fixes the random stream of keys and sequence numbers; returns how many streams it uses. Before the first
    // connection.
    int64_t AssignStreams(int64_t stream);

    // For agents. `StandBehind` puts the engine of a relay on its node, where another protocol has the place of TCP and
    // passes on what is for the agent.
    void StandBehind(ns3::Ptr<ns3::Node> node);
    void SetAgent(ns3::Ptr<Agent> agent);
    void StartAgent(const std::string& peers, const std::string& settings);
    // Gives the agent of a relay a packet that is neither from this node nor for it. The agent passes it on, or not.
    template <class Header>
    void PassOn(const ns3::Packet& packet, const Header& header);
    // The key by which other agents know this one, in hexadecimal digits.
    std::string GetPublicKey();

    // For sockets.
    AnabranchEndpoint* GetEngine();
    // Returns whether a connection to `destination` may begin now; if not, the socket is asked again when the agent is
    // ready.
    bool MayConnect(const AnabranchAddress& destination, ns3::Ptr<Socket> socket);
    // Gives the engine a turn at this very time, after a command.
    void Wake();
    void AddConnection(uint64_t connection, ns3::Ptr<Socket> socket);
    // The send buffer of a connection may have more room.
    void NoteRoom(uint64_t connection) { mayHaveRoom.insert(connection); }
    void AddListener(uint64_t listener, ns3::Ptr<Socket> socket);
    void RemoveListener(uint64_t listener);
    // See Socket.
    bool YieldIpv4(uint16_t port);
    void ResumeIpv4(uint16_t port);
    // Returns whether this is an address of an interface that is up. The port is ignored.
    bool IsUsable(const AnabranchAddress& address) const;
    // Returns whether connections of this family, 4 or 6, can begin at an address of this node.
    bool HasAddress(uint8_t family);
    // Returns the address from which packets to `destination` leave by default; that of nobody (IsAny) if there is no
    // route, or if the agent chooses it (ChoosesAddress).
    bool ChoosesAddress() const { return agent && agent->ChoosesAddress(); }
    AnabranchAddress SourceFor(const AnabranchAddress& destination, ns3::Ptr<ns3::NetDevice> device) const;

    // For those who watch addresses and interfaces: they have changed.
    void NoteAddresses();

    int GetProtocolNumber() const override;
    RxStatus Receive(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                     ns3::Ptr<ns3::Ipv4Interface>) override;
    RxStatus Receive(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv6Header& header,
                     ns3::Ptr<ns3::Ipv6Interface>) override;
    void SetDownTarget(DownTargetCallback) override;
    void SetDownTarget6(DownTargetCallback6) override;
    DownTargetCallback GetDownTarget() const override;
    DownTargetCallback6 GetDownTarget6() const override;

protected:
    void NotifyNewAggregate() override;
    void DoDispose() override;

private:
    void SetSettings(std::string json);
    std::string GetSettings() const;
    void RequireNoEngine(const char* what) const;
    ns3::Ptr<ns3::UniformRandomVariable> GetRandom();
    void MakeEngine();
    void StartLog();
    template <class Family>
    void Join(Layer<Family>& layer);
    void FollowAddresses();
    template <class Header>
    RxStatus Take(const ns3::Packet& packet, const Header& header);
    void Turn();
    bool Transmit();
    bool Dispatch();
    void Tell(const AnabranchEvent& event);
    bool OfferRoom();
    bool HearAgent();
    void DrawOctets(uint8_t* octets, size_t count);
    template <class Family, class Trace>
    void Send(ns3::Ptr<ns3::Packet> packet, const Layer<Family>& layer, const Trace& noRoute);
    ns3::Ptr<Socket> SocketOf(const FourTuple& subflow, bool isSyn);
    template <class Family>
    void Tag(ns3::Ptr<ns3::Packet> packet, const typename Family::Header& header);
    void TraceWindows();
    void SetTimer();

    Layer<Family4> layer4;
    Layer<Family6> layer6;
    ns3::Ptr<ns3::UniformRandomVariable> random;
    std::string settings;
    std::string logPrefix;
    std::ofstream log;
    AnabranchEndpoint* engine = nullptr;
    bool isBehind = false;
    ns3::Ptr<Agent> agent;
    // The private key of the agent, once it is drawn.
    std::vector<uint8_t> secret;
    // Sockets whose connections begin when the agent is ready.
    std::vector<ns3::Ptr<Socket>> waiting;
    std::map<uint64_t, ns3::Ptr<Socket>> connections;
    std::map<uint64_t, ns3::Ptr<Socket>> listeners;
    Subflows subflows;
    // Connections whose sockets may have more room, because a packet came or went, or a setting changed: what has been
    // sent no longer counts as unsent.
    std::set<uint64_t> mayHaveRoom;
    // Connections whose windows somebody traces, and for which a packet came or went: these change windows.
    std::set<uint64_t> traced;
    std::vector<uint8_t> buffer;
    ns3::EventId timer;
    bool hasTurn = false;
    ns3::TracedCallback<const ns3::Ipv4Header&, ns3::Ptr<const ns3::Packet>> noRoute4;
    ns3::TracedCallback<const ns3::Ipv6Header&, ns3::Ptr<const ns3::Packet>> noRoute6;
};

} // namespace anabranch
