// SPDX-License-Identifier: GPL-2.0-only
#include "socket.h"

#include "engine.h"
#include "host.h"

#include "ns3/log.h"
#include "ns3/node.h"
#include "ns3/simulator.h"
#include "ns3/string.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace ns3;

NS_LOG_COMPONENT_DEFINE("AnabranchSocket");

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Socket);

namespace {

const InetSocketAddress ANY(Ipv4Address::GetAny(), 0);

uint32_t Clamp(uint64_t bytes)
{
    return static_cast<uint32_t>(std::min<uint64_t>(bytes, std::numeric_limits<uint32_t>::max()));
}

} // namespace

TypeId Socket::GetTypeId()
{
    static TypeId id =
        TypeId("anabranch::Socket")
            .SetParent<ns3::Socket>()
            .SetGroupName("Anabranch")
            .AddConstructor<Socket>()
            .AddAttribute("Settings",
                          "Settings of connections as a JSON object: see anabranch_connect() in anabranch.h. Accepted "
                          "connections have those of the listening socket.",
                          StringValue("{}"),
                          MakeStringAccessor(&Socket::settings),
                          MakeStringChecker());
    return id;
}

Socket::Socket() : local(ANY), lastLocal(ANY), lastRemote(ANY) {}

Socket::~Socket() = default;

void Socket::DoDispose()
{
    host = nullptr;
    ns3::Socket::DoDispose();
}

void Socket::SetHost(Ptr<Host> of)
{
    host = of;
}

AnabranchEndpoint* Socket::Engine() const
{
    return host->GetEngine();
}

bool Socket::HasManualTtl() const
{
    return IsManualIpTtl();
}

// Port zero is an error of the call, not of the settings.
bool Socket::CheckPort(uint16_t port) const
{
    return port != 0 || Fail(ERROR_INVAL) == 0;
}

int Socket::Fail(SocketErrno error) const
{
    lastError = error;
    return -1;
}

// Turns the status of a call into the result of a socket call.
int Socket::Status(AnabranchStatus status, const char* call) const
{
    switch (status) {
    case ANABRANCH_STATUS_OK:
        return 0;
    case ANABRANCH_STATUS_AGAIN:
        return Fail(ERROR_AGAIN);
    case ANABRANCH_STATUS_FINISHED:
    case ANABRANCH_STATUS_CLOSED:
    case ANABRANCH_STATUS_WRONG_STATE:
        return Fail(ERROR_SHUTDOWN);
    case ANABRANCH_STATUS_UNKNOWN:
        return Fail(ERROR_NOTCONN);
    case ANABRANCH_STATUS_IN_USE:
        return Fail(ERROR_ADDRINUSE);
    case ANABRANCH_STATUS_LIMIT:
    case ANABRANCH_STATUS_FIXED:
    case ANABRANCH_STATUS_NOT_MPTCP:
        return Fail(ERROR_INVAL);
    default:
        Require(status, call);
        return Fail(ERROR_INVAL);
    }
}

int Socket::Bind(const Address& address)
{
    if (!InetSocketAddress::IsMatchingType(address))
        return Fail(ERROR_AFNOSUPPORT);
    if (connection != 0 || listener != 0)
        return Fail(ERROR_ISCONN);
    local = InetSocketAddress::ConvertFrom(address);
    return 0;
}

int Socket::Bind()
{
    return Bind(ANY);
}

int Socket::Bind6()
{
    return Fail(ERROR_AFNOSUPPORT);
}

int Socket::Listen()
{
    if (connection != 0 || listener != 0)
        return Fail(ERROR_ISCONN);
    if (!CheckPort(local.GetPort()))
        return -1;
    const AnabranchAddress at = ToEngine(local.GetIpv4(), local.GetPort());
    const AnabranchStatus status = anabranch_listen(Engine(), &at, settings.c_str(), &listener);
    RequireSettings(status, settings);
    if (status != ANABRANCH_STATUS_OK)
        return Status(status, "anabranch_listen");
    host->AddListener(listener, this);
    return 0;
}

int Socket::Connect(const Address& address)
{
    if (!InetSocketAddress::IsMatchingType(address))
        return Fail(ERROR_AFNOSUPPORT);
    if (connection != 0 || listener != 0)
        return Fail(ERROR_ISCONN);
    const InetSocketAddress to = InetSocketAddress::ConvertFrom(address);
    if (!CheckPort(to.GetPort()))
        return -1;
    SetIpTos(to.GetTos());
    Ipv4Address from = local.GetIpv4();
    if (from.IsAny())
        from = host->SourceFor(to.GetIpv4(), GetBoundNetDevice());
    if (from.IsAny())
        return Fail(ERROR_NOROUTETOHOST);
    const AnabranchAddress here = ToEngine(from, local.GetPort()), there = ToEngine(to.GetIpv4(), to.GetPort());
    const AnabranchStatus status =
        anabranch_connect(Engine(), &here, &there, settings.c_str(), NowNs(), &connection);
    RequireSettings(status, settings);
    if (status != ANABRANCH_STATUS_OK)
        return Status(status, "anabranch_connect");
    host->AddConnection(connection, this);
    host->Wake();
    return 0;
}

int Socket::Close()
{
    if (listener != 0) {
        Require(anabranch_close_listener(Engine(), listener, NowNs()), "anabranch_close_listener");
        host->RemoveListener(listener);
        listener = 0;
        host->Wake();
        return 0;
    }
    isSendShut = isReceiveShut = isClosed = true;
    // A connection that is being opened ends when it is open and its data have arrived.
    if (!isConnected || isOver)
        return 0;
    host->Wake();
    return Status(anabranch_close(Engine(), connection, NowNs()), "anabranch_close");
}

int Socket::ShutdownSend()
{
    isSendShut = true;
    if (!isConnected || isOver)
        return 0;
    host->Wake();
    return Status(anabranch_shutdown(Engine(), connection, NowNs()), "anabranch_shutdown");
}

int Socket::ShutdownRecv()
{
    isReceiveShut = true;
    if (!isConnected || isOver)
        return 0;
    host->Wake();
    return Status(anabranch_shutdown_read(Engine(), connection, NowNs()), "anabranch_shutdown_read");
}

uint32_t Socket::GetTxAvailable() const
{
    uint64_t bytes = 0;
    if (connection != 0 && !isOver)
        Status(anabranch_send_capacity(Engine(), connection, &bytes), "anabranch_send_capacity");
    return Clamp(bytes);
}

int Socket::Send(Ptr<Packet> packet, uint32_t flags)
{
    NS_ABORT_MSG_IF(flags, "a stream socket knows no flags of Send");
    if (connection == 0 || isOver)
        return Fail(ERROR_NOTCONN);
    if (isSendShut)
        return Fail(ERROR_SHUTDOWN);
    knownRoom = GetTxAvailable();
    if (packet->GetSize() > knownRoom)
        return Fail(ERROR_AGAIN);
    std::vector<uint8_t> octets(packet->GetSize());
    packet->CopyData(octets.data(), packet->GetSize());
    size_t taken = 0;
    const AnabranchStatus status =
        anabranch_send(Engine(), connection, octets.data(), octets.size(), NowNs(), &taken);
    if (status != ANABRANCH_STATUS_OK)
        return Status(status, "anabranch_send");
    NS_ABORT_MSG_UNLESS(taken == octets.size(), "the engine took less than the room it had");
    knownRoom -= packet->GetSize();
    host->Wake();
    // Not within this call: the application may send again when it hears of it.
    Simulator::ScheduleNow(&Socket::TellSent, Ptr<Socket>(this), packet->GetSize());
    return static_cast<int>(taken);
}

void Socket::TellSent(uint32_t bytes)
{
    NotifyDataSent(bytes);
}

int Socket::SendTo(Ptr<Packet> packet, uint32_t flags, const Address&)
{
    return Send(packet, flags);
}

bool Socket::OfferRoom()
{
    const uint32_t room = isOver || isSendShut || !isConnected ? 0 : GetTxAvailable();
    if (room <= knownRoom)
        return false;
    knownRoom = room;
    NotifySend(room);
    return true;
}

uint32_t Socket::GetRxAvailable() const
{
    uint64_t bytes = 0;
    if (connection != 0 && !isOver)
        Status(anabranch_readable_bytes(Engine(), connection, &bytes), "anabranch_readable_bytes");
    return Clamp(bytes);
}

// An empty packet is the end of the peer's stream, as with ns-3's TCP.
Ptr<Packet> Socket::Recv(uint32_t bytesMax, uint32_t flags)
{
    NS_ABORT_MSG_IF(flags, "a stream socket knows no flags of Recv");
    if (connection == 0 || isOver || isReceiveShut) {
        Fail(isReceiveShut ? ERROR_SHUTDOWN : ERROR_NOTCONN);
        return nullptr;
    }
    const uint32_t capacity = std::min(bytesMax, std::max(GetRxAvailable(), 1U));
    if (capacity == 0)
        return Create<Packet>();
    std::vector<uint8_t> octets(capacity);
    size_t length = 0;
    const AnabranchStatus status =
        anabranch_recv(Engine(), connection, octets.data(), octets.size(), NowNs(), &length);
    host->Wake();
    isEndRead |= status == ANABRANCH_STATUS_FINISHED;
    if (status == ANABRANCH_STATUS_OK || status == ANABRANCH_STATUS_FINISHED)
        return Create<Packet>(octets.data(), static_cast<uint32_t>(length));
    Status(status, "anabranch_recv");
    return nullptr;
}

Ptr<Packet> Socket::RecvFrom(uint32_t bytesMax, uint32_t flags, Address& from)
{
    const Ptr<Packet> packet = Recv(bytesMax, flags);
    if (packet)
        GetPeerName(from);
    return packet;
}

int Socket::GetSockName(Address& address) const
{
    address = connection == 0 ? Address(local) : Address(lastLocal);
    AnabranchAddress here, there;
    if (connection != 0 && !isOver && anabranch_addresses(Engine(), connection, &here, &there) == ANABRANCH_STATUS_OK)
        address = FromEngine(here);
    return 0;
}

int Socket::GetPeerName(Address& address) const
{
    AnabranchAddress here, there;
    if (connection == 0)
        return Fail(ERROR_NOTCONN);
    address = lastRemote;
    if (!isOver && anabranch_addresses(Engine(), connection, &here, &there) == ANABRANCH_STATUS_OK)
        address = FromEngine(there);
    return 0;
}

Ptr<Node> Socket::GetNode() const
{
    return host->GetObject<Node>();
}

Socket::SocketErrno Socket::GetErrno() const
{
    return lastError;
}

Socket::SocketType Socket::GetSocketType() const
{
    return NS3_SOCK_STREAM;
}

bool Socket::SetAllowBroadcast(bool allow)
{
    return !allow;
}

bool Socket::GetAllowBroadcast() const
{
    return false;
}

std::string Socket::GetStatistics() const
{
    char* text = nullptr;
    if (connection == 0 || isOver)
        return lastStatistics;
    if (Status(anabranch_stats_json(Engine(), connection, &text), "anabranch_stats_json") != 0)
        return {};
    const std::string copy(text);
    anabranch_string_free(text);
    return copy;
}

bool Socket::AddSubflow(Ipv4Address from, const InetSocketAddress& remote, bool backup)
{
    uint16_t number = 0;
    if (connection == 0 || isOver)
        return Fail(ERROR_NOTCONN) == 0;
    if (!host->IsUsable(from))
        return Fail(ERROR_ADDRNOTAVAIL) == 0;
    if (!CheckPort(remote.GetPort()))
        return false;
    const AnabranchAddress here = ToEngine(from), there = ToEngine(remote.GetIpv4(), remote.GetPort());
    const AnabranchStatus status =
        anabranch_add_subflow(Engine(), connection, &here, &there, backup, NowNs(), &number);
    host->Wake();
    return Status(status, "anabranch_add_subflow") == 0;
}

bool Socket::Change(const std::string& changed)
{
    if (connection == 0 || isOver)
        return Fail(ERROR_NOTCONN) == 0;
    const AnabranchStatus status = anabranch_change(Engine(), connection, changed.c_str(), NowNs());
    RequireSettings(status, changed);
    host->Wake();
    return Status(status, "anabranch_change") == 0;
}

void Socket::Handle(const AnabranchEvent& event)
{
    switch (event.kind) {
    case ANABRANCH_EVENT_KIND_INCOMING:
        HandleIncoming();
        break;
    case ANABRANCH_EVENT_KIND_CONNECTED:
        HandleConnected();
        break;
    case ANABRANCH_EVENT_KIND_READABLE:
        if (!isReceiveShut)
            NotifyDataRecv();
        break;
    case ANABRANCH_EVENT_KIND_PEER_FINISHED:
        TellPeerFinished();
        break;
    case ANABRANCH_EVENT_KIND_CLOSED:
        HandleClosed(event.reason);
        break;
    default:
        NS_LOG_LOGIC("event " << event.kind << " of connection " << event.connection);
    }
}

// What was asked while the connection was being opened is done now.
void Socket::HandleConnected()
{
    isConnected = true;
    NotifyConnectionSucceeded();
    if (isClosed) {
        Close();
        return;
    }
    if (isReceiveShut)
        ShutdownRecv();
    if (isSendShut)
        ShutdownSend();
    knownRoom = 0;
    OfferRoom();
}

void Socket::HandleIncoming()
{
    uint64_t accepted = 0;
    while (listener != 0 && anabranch_accept(Engine(), listener, &accepted) == ANABRANCH_STATUS_OK) {
        const Ptr<Socket> socket = CreateObject<Socket>();
        socket->Adopt(*this, accepted);
        Address from;
        socket->GetPeerName(from);
        if (NotifyConnectionRequest(from)) {
            NotifyNewConnectionCreated(socket, from);
            socket->OfferRoom();
            host->CatchUp(accepted);
        } else {
            socket->isSendShut = true;
            Require(anabranch_abort(Engine(), accepted, NowNs()), "anabranch_abort");
        }
    }
}

void Socket::Adopt(const Socket& listening, uint64_t accepted)
{
    host = listening.host;
    settings = listening.settings;
    local = listening.local;
    // Where nothing will be sent, as PacketSink says of its listening socket, the connection ends with the peer's data.
    isSendShut = listening.isSendShut;
    connection = accepted;
    isConnected = true;
    host->AddConnection(connection, this);
}

void Socket::TellPeerFinished()
{
    // The application reads the end of the stream first.
    if (!isEndRead && !isReceiveShut)
        NotifyDataRecv();
    if (!isEndTold && !isOver) {
        isEndTold = true;
        NotifyNormalClose();
    }
    if (isSendShut && !isReceiveShut && !isOver)
        Close();
}

void Socket::HandleHostGone()
{
    listener = 0;
    if (connection != 0 && !isOver) {
        lastStatistics = GetStatistics();
        isOver = true;
    }
}

void Socket::HandleClosed(AnabranchCloseReason reason)
{
    Address here, there;
    GetSockName(here);
    GetPeerName(there);
    lastLocal = InetSocketAddress::ConvertFrom(here);
    lastRemote = InetSocketAddress::ConvertFrom(there);
    lastStatistics = GetStatistics();
    isOver = true;
    Require(anabranch_release(Engine(), connection), "anabranch_release");
    if (!isConnected) {
        // It may try again.
        connection = 0;
        isOver = false;
        lastError = ERROR_NOTCONN;
        NotifyConnectionFailed();
    } else if (reason != ANABRANCH_CLOSE_REASON_FINISHED) {
        NotifyErrorClose();
    } else if (!isEndTold) {
        isEndTold = true;
        NotifyNormalClose();
    }
}

} // namespace anabranch
