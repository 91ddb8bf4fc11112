// SPDX-License-Identifier: GPL-2.0-only
// A stream socket of ns-3 whose connections the engine carries.
#pragma once

#include "anabranch.h"
#include "family.h"

#include "ns3/socket.h"
#include "ns3/traced-callback.h"

#include <map>
#include <string>
#include <vector>

namespace anabranch {

class Host;

// For every application of ns-3 that uses stream sockets: it names the factory `anabranch::SocketFactory`.
//
// As with ns-3's TCP, `Send` takes a packet as a whole or not at all, and the send callback tells whenever there is more
// room. Octets are carried, tags are not. One difference: a connection request is reported when the connection
// is established, so a refused one ends with a reset.
//
// A socket that listens at all addresses of IPv6 also serves IPv4, whose addresses it names as mapped ones
// (::ffff:10.0.0.1), unless a socket of IPv4 listens at the port.
class Socket : public ns3::Socket {
public:
    static ns3::TypeId GetTypeId();
    Socket();
    // Of a connection that `listening` has accepted. As with ns-3's TCP, it has that socket's settings, IP options and
    // close callbacks.
    Socket(const Socket& listening, uint64_t accepted);
    ~Socket() override;

    void SetHost(ns3::Ptr<Host> host);
    // The connection and each of its subflows, as the JSON object of anabranch_stats_json(); empty without a
    // connection. Stays available when the connection is over.
    std::string GetStatistics() const;
    // Adds a subflow (RFC 6897 TCP_MULTIPATH_ADD) where the path manager does not. Returns false, with GetErrno(), if
    // the connection can have none now.
    bool AddSubflow(ns3::Ipv4Address local, const ns3::Address& remote, bool backup);
    bool AddSubflow(ns3::Ipv6Address local, const ns3::Address& remote, bool backup);
    // Changes settings of an open connection; see anabranch_change(). Returns false, with GetErrno(), if there is no
    // connection or a setting cannot change any more.
    bool Change(const std::string& settings);

    // Signature of the trace source "CongestionWindow": the subflow by its number in the statistics, and its windows
    // before and after, octets. At first the former is zero.
    typedef void (*WindowTracedCallback)(uint16_t subflow, uint64_t before, uint64_t after);

    // For the host: the agent is ready, so the connection begins.
    void ConnectNow();
    // For the host: an event of the engine.
    void Handle(const AnabranchEvent& event);
    // Tells the application if there is more room than when it last knew. Returns whether it did.
    bool OfferRoom();
    // The simulation is over, and the engine with it.
    void HandleHostGone();
    // Returns whether anybody traces windows; reports those that have changed.
    bool TracesWindows() const;
    void TraceWindows();
    // Returns whether it listens there.
    bool ListensAt(const AnabranchAddress& at) const;
    // Returns what headers of its packets say, where the engine would say `marks`.
    Marks MarksOf(Marks marks, bool isIpv6) const;
    // An engine has one listener for each port: a socket of IPv4 that listens at all addresses comes before one of both
    // families, which stops to serve IPv4 at the port and serves it again when the other has gone. Returns whether this
    // socket did.
    bool YieldIpv4(uint16_t port);
    void ResumeIpv4(uint16_t port);

    SocketErrno GetErrno() const override;
    SocketType GetSocketType() const override;
    ns3::Ptr<ns3::Node> GetNode() const override;
    int Bind(const ns3::Address& address) override;
    int Bind() override;
    int Bind6() override;
    int Close() override;
    int ShutdownSend() override;
    int ShutdownRecv() override;
    int Connect(const ns3::Address& address) override;
    int Listen() override;
    uint32_t GetTxAvailable() const override;
    int Send(ns3::Ptr<ns3::Packet> packet, uint32_t flags) override;
    int SendTo(ns3::Ptr<ns3::Packet> packet, uint32_t flags, const ns3::Address& to) override;
    uint32_t GetRxAvailable() const override;
    ns3::Ptr<ns3::Packet> Recv(uint32_t bytesMax, uint32_t flags) override;
    ns3::Ptr<ns3::Packet> RecvFrom(uint32_t bytesMax, uint32_t flags, ns3::Address& from) override;
    int GetSockName(ns3::Address& address) const override;
    int GetPeerName(ns3::Address& address) const override;
    bool SetAllowBroadcast(bool allow) override;
    bool GetAllowBroadcast() const override;

protected:
    void DoDispose() override;

private:
    int Begin();
    int Fail(SocketErrno error) const;
    int Status(AnabranchStatus status, const char* call) const;
    void HandleConnected();
    void HandleIncoming(uint64_t at);
    void HandleClosed(AnabranchCloseReason reason);
    void KeepUnread();
    ns3::Ptr<ns3::Packet> RecvKept(uint32_t bytesMax);
    void TellPeerFinished();
    void TellSent(uint32_t bytes);
    bool CheckPort(uint16_t port) const;
    bool CheckFamily(const AnabranchAddress& to) const;
    bool CheckPeer(const AnabranchAddress& to) const;
    bool AddSubflow(const AnabranchAddress& local, const AnabranchAddress& remote, bool backup);
    AnabranchStatus ListenAt(const AnabranchAddress& at, uint64_t& number);
    void CloseListener(uint64_t& number);
    bool ServesBoth() const;
    AnabranchStatus ListenAtAnyPort();
    ns3::Address Name(const AnabranchAddress& address) const;
    AnabranchEndpoint* Engine() const;

    ns3::Ptr<Host> host;
    std::string settings;
    // Of family 0 as long as it is not bound.
    AnabranchAddress local = {};
    uint64_t connection = 0;
    uint64_t listener = 0;
    // Serves IPv4 for a socket that listens at all addresses of IPv6.
    uint64_t listener4 = 0;
    // Accepted by a socket of IPv6.
    bool isOfIpv6 = false;
    // Room that the application knows of.
    uint32_t knownRoom = 0;
    // Waits for the host's agent, to connect to `there`.
    bool isWaiting = false;
    AnabranchAddress there = {};
    bool isConnected = false;
    bool isClosed = false;
    bool isSendShut = false;
    bool isReceiveShut = false;
    bool isEndRead = false;
    bool isEndTold = false;
    bool isOver = false;
    // What the application had not read when the connection ended, from `keptFrom` on.
    std::vector<uint8_t> kept;
    size_t keptFrom = 0;
    // Subflows and the windows that were reported last.
    std::map<uint16_t, uint64_t> windows = {{0, 0}};
    ns3::TracedCallback<uint16_t, uint64_t, uint64_t> windowTrace;
    std::string lastStatistics;
    AnabranchAddress lastLocal = {};
    AnabranchAddress lastRemote = {};
    mutable SocketErrno lastError = ERROR_NOTERROR;
};

} // namespace anabranch
