// SPDX-License-Identifier: GPL-2.0-only
#include "socket.h"

#include "engine.h"
#include "host.h"

#include "ns3/inet-socket-address.h"
#include "ns3/inet6-socket-address.h"
#include "ns3/log.h"
#include "ns3/node.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/trace-source-accessor.h"

#include <algorithm>
#include <limits>

using namespace ns3;

NS_LOG_COMPONENT_DEFINE("AnabranchSocket");

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(Socket);

namespace {

// RFC 3168: the two bits of the TOS or traffic class that are not the socket's.
constexpr uint8_t ECN_BITS = 3;

// Where ns-3's TCP, too, begins to look for a free port.
constexpr uint16_t EPHEMERAL_PORT_FIRST = 49152;

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
                          MakeStringChecker())
            .AddTraceSource("CongestionWindow",
                            "The congestion window of a subflow has changed, in a turn of the engine.",
                            MakeTraceSourceAccessor(&Socket::windowTrace),
                            "anabranch::Socket::WindowTracedCallback");
    return id;
}

Socket::Socket() = default;

// The base class is copied for what only it can read. As in ns-3's TCP, the application sets all callbacks but those of
// the end.
Socket::Socket(const Socket& listening, uint64_t accepted)
    : ns3::Socket(listening), host(listening.host), settings(listening.settings), local(listening.local),
      connection(accepted), isOfIpv6(listening.local.family == 6), isConnected(true),
      // Where nothing will be sent, as PacketSink says of its listening socket, the connection ends with the peer's data.
      isSendShut(listening.isSendShut)
{
    const auto none = MakeNullCallback<void, Ptr<ns3::Socket>>();
    const auto noneOfBytes = MakeNullCallback<void, Ptr<ns3::Socket>, uint32_t>();
    SetConnectCallback(none, none);
    SetRecvCallback(none);
    SetSendCallback(noneOfBytes);
    SetDataSentCallback(noneOfBytes);
}

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

Marks Socket::MarksOf(Marks marks, bool isIpv6) const
{
    const uint8_t tos = isIpv6 ? GetIpv6Tclass() : GetIpTos();
    marks.tos = (tos & ~ECN_BITS) | (marks.tos & ECN_BITS);
    if (isIpv6 ? IsManualIpv6HopLimit() : IsManualIpTtl())
        marks.ttl = isIpv6 ? GetIpv6HopLimit() : GetIpTtl();
    return marks;
}

// Port zero is an error of the call, not of the settings.
bool Socket::CheckPort(uint16_t port) const
{
    return port != 0 || Fail(ERROR_INVAL) == 0;
}

// Whether one host can be there: what the engine refuses otherwise is an error of the call, not of the settings.
bool Socket::CheckPeer(const AnabranchAddress& to) const
{
    const bool isBroadcast = to.family == 4 && Ipv4Of(to).IsBroadcast();
    const bool isOfOne = !IsAny(to) && !IsMulticast(to) && !isBroadcast;
    return CheckPort(to.port) && (isOfOne || Fail(ERROR_INVAL) == 0);
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
    case ANABRANCH_STATUS_JOINS_FORBIDDEN:
        return Fail(ERROR_OPNOTSUPP);
    default:
        Require(status, call);
        return Fail(ERROR_INVAL);
    }
}

int Socket::Bind(const Address& address)
{
    const AnabranchAddress at = ToEngine(address);
    if (at.family == 0)
        return Fail(ERROR_AFNOSUPPORT);
    if (connection != 0 || listener != 0)
        return Fail(ERROR_ISCONN);
    if (IsMulticast(at))
        return Fail(ERROR_ADDRNOTAVAIL);
    local = at;
    return 0;
}

int Socket::Bind()
{
    return Bind(InetSocketAddress(Ipv4Address::GetAny(), 0));
}

int Socket::Bind6()
{
    return Bind(Inet6SocketAddress(Ipv6Address::GetAny(), 0));
}

int Socket::Listen()
{
    if (connection != 0 || listener != 0)
        return Fail(ERROR_ISCONN);
    if (local.family == 0)
        return Fail(ERROR_INVAL);
    AnabranchStatus status = local.port == 0 ? ListenAtAnyPort() : ListenAt(local, listener);
    // A single address is in use by a socket at this address only.
    const bool isAny4 = local.family == 4 && IsAny(local);
    if (status == ANABRANCH_STATUS_IN_USE && isAny4 && host->YieldIpv4(local.port))
        status = ListenAt(local, listener);
    if (status != ANABRANCH_STATUS_OK)
        return Status(status, "anabranch_listen");
    ResumeIpv4(local.port);
    return 0;
}

AnabranchStatus Socket::ListenAt(const AnabranchAddress& at, uint64_t& number)
{
    const AnabranchStatus status = anabranch_listen(Engine(), &at, settings.c_str(), &number);
    RequireSettings(status, settings);
    if (status == ANABRANCH_STATUS_OK)
        host->AddListener(number, this);
    return status;
}

// As after ns-3's Bind, which chooses the port itself.
AnabranchStatus Socket::ListenAtAnyPort()
{
    AnabranchStatus status = ANABRANCH_STATUS_IN_USE;
    for (uint32_t port = EPHEMERAL_PORT_FIRST; port <= UINT16_MAX && status == ANABRANCH_STATUS_IN_USE; port++) {
        AnabranchAddress at = local;
        at.port = static_cast<uint16_t>(port);
        status = ListenAt(at, listener);
        if (status == ANABRANCH_STATUS_OK)
            local = at;
    }
    return status;
}

bool Socket::ListensAt(const AnabranchAddress& at) const
{
    const bool isServed = IsAny(local) ? local.family == at.family || listener4 != 0 : Compare(local, at) == 0;
    return listener != 0 && local.port == at.port && isServed;
}

// Returns whether it listens at all addresses of IPv6.
bool Socket::ServesBoth() const
{
    return listener != 0 && local.family == 6 && IsAny(local);
}

bool Socket::YieldIpv4(uint16_t port)
{
    if (listener4 == 0 || local.port != port)
        return false;
    CloseListener(listener4);
    return true;
}

// If the port is in use, it is a socket of IPv4 that uses it.
void Socket::ResumeIpv4(uint16_t port)
{
    if (ServesBoth() && local.port == port && listener4 == 0)
        ListenAt(ToEngine(Ipv4Address::GetAny(), port), listener4);
}

void Socket::CloseListener(uint64_t& number)
{
    Require(anabranch_close_listener(Engine(), number, NowNs()), "anabranch_close_listener");
    host->RemoveListener(number);
    number = 0;
}

// A socket of all addresses of IPv6 may connect to IPv4, too.
bool Socket::CheckFamily(const AnabranchAddress& to) const
{
    const bool isFree = local.family == 0 || (local.family == 6 && IsAny(local));
    return isFree || local.family == to.family || Fail(ERROR_AFNOSUPPORT) == 0;
}

int Socket::Connect(const Address& address)
{
    const AnabranchAddress to = ToEngine(address);
    if (to.family == 0)
        return Fail(ERROR_AFNOSUPPORT);
    if (connection != 0 || listener != 0 || isWaiting)
        return Fail(ERROR_ISCONN);
    if (!CheckFamily(to) || !CheckPeer(to))
        return -1;
    if (IsAny(local) && !GetBoundNetDevice() && host->ChoosesAddress() && !host->HasAddress(to.family))
        return Fail(ERROR_NOROUTETOHOST);
    there = to;
    if (InetSocketAddress::IsMatchingType(address))
        SetIpTos(InetSocketAddress::ConvertFrom(address).GetTos());
    isWaiting = !host->MayConnect(there, this);
    return isWaiting ? 0 : Begin();
}

void Socket::ConnectNow()
{
    isWaiting = false;
    if (Begin() != 0)
        NotifyConnectionFailed();
}

int Socket::Begin()
{
    AnabranchAddress here = local;
    if (IsAny(here))
        here = host->SourceFor(there, GetBoundNetDevice());
    // Interfaces may have gone down since Connect was called.
    if (IsAny(here) && !(host->ChoosesAddress() && host->HasAddress(there.family)))
        return Fail(ERROR_NOROUTETOHOST);
    here.port = local.port;
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
        CloseListener(listener);
        if (listener4 != 0)
            CloseListener(listener4);
        host->ResumeIpv4(local.port);
        host->Wake();
        return 0;
    }
    isSendShut = isReceiveShut = isClosed = true;
    kept.clear();
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
    kept.clear();
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
    uint64_t bytes = kept.empty() ? 0 : kept.size() - keptFrom;
    if (connection != 0 && !isOver)
        Status(anabranch_readable_bytes(Engine(), connection, &bytes), "anabranch_readable_bytes");
    return Clamp(bytes);
}

// An empty packet is the end of the peer's stream, as with ns-3's TCP.
Ptr<Packet> Socket::Recv(uint32_t bytesMax, uint32_t flags)
{
    NS_ABORT_MSG_IF(flags, "a stream socket knows no flags of Recv");
    if (connection == 0 || isReceiveShut) {
        Fail(isReceiveShut ? ERROR_SHUTDOWN : ERROR_NOTCONN);
        return nullptr;
    }
    if (isOver)
        return RecvKept(bytesMax);
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

// The connection is over.
Ptr<Packet> Socket::RecvKept(uint32_t bytesMax)
{
    const uint32_t length = std::min(bytesMax, GetRxAvailable());
    if (length > 0) {
        const Ptr<Packet> packet = Create<Packet>(kept.data() + keptFrom, length);
        keptFrom += length;
        return packet;
    }
    if (isEndTold && !isEndRead && bytesMax > 0) {
        isEndRead = true;
        return Create<Packet>();
    }
    Fail(ERROR_NOTCONN);
    return nullptr;
}

Ptr<Packet> Socket::RecvFrom(uint32_t bytesMax, uint32_t flags, Address& from)
{
    const Ptr<Packet> packet = Recv(bytesMax, flags);
    if (packet)
        GetPeerName(from);
    return packet;
}

Address Socket::Name(const AnabranchAddress& address) const
{
    return isOfIpv6 ? MappedFromEngine(address) : FromEngine(address);
}

int Socket::GetSockName(Address& address) const
{
    AnabranchAddress here = connection == 0 ? local : lastLocal, there;
    if (connection != 0 && !isOver)
        Status(anabranch_addresses(Engine(), connection, &here, &there), "anabranch_addresses");
    address = Name(here);
    return 0;
}

int Socket::GetPeerName(Address& address) const
{
    AnabranchAddress here, there = lastRemote;
    if (connection == 0)
        return Fail(ERROR_NOTCONN);
    if (!isOver)
        Status(anabranch_addresses(Engine(), connection, &here, &there), "anabranch_addresses");
    address = Name(there);
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

bool Socket::AddSubflow(Ipv4Address from, const Address& remote, bool backup)
{
    return AddSubflow(ToEngine(from, 0), ToEngine(remote), backup);
}

bool Socket::AddSubflow(Ipv6Address from, const Address& remote, bool backup)
{
    return AddSubflow(ToEngine(from, 0), ToEngine(remote), backup);
}

bool Socket::AddSubflow(const AnabranchAddress& here, const AnabranchAddress& there, bool backup)
{
    uint16_t number = 0;
    if (connection == 0 || isOver)
        return Fail(ERROR_NOTCONN) == 0;
    if (here.family != there.family)
        return Fail(ERROR_AFNOSUPPORT) == 0;
    if (!host->IsUsable(here))
        return Fail(ERROR_ADDRNOTAVAIL) == 0;
    if (!CheckPeer(there))
        return false;
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
    host->NoteRoom(connection);
    host->Wake();
    return Status(status, "anabranch_change") == 0;
}

bool Socket::TracesWindows() const
{
    return !windowTrace.IsEmpty();
}

void Socket::TraceWindows()
{
    for (auto subflow = windows.begin(); subflow != windows.end() && !isOver;) {
        const auto [number, before] = *subflow;
        uint64_t after = 0;
        if (anabranch_congestion_window(Engine(), connection, number, &after) != ANABRANCH_STATUS_OK) {
            subflow = windows.erase(subflow);
            continue;
        }
        subflow->second = after;
        ++subflow;
        if (after != before)
            windowTrace(number, before, after);
    }
}

void Socket::Handle(const AnabranchEvent& event)
{
    switch (event.kind) {
    case ANABRANCH_EVENT_KIND_INCOMING:
        HandleIncoming(event.listener);
        break;
    case ANABRANCH_EVENT_KIND_CONNECTED:
        HandleConnected();
        break;
    case ANABRANCH_EVENT_KIND_SUBFLOW_ESTABLISHED:
        windows.emplace(event.subflow, 0);
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

void Socket::HandleIncoming(uint64_t at)
{
    uint64_t accepted = 0;
    while (listener != 0 && anabranch_accept(Engine(), at, &accepted) == ANABRANCH_STATUS_OK) {
        const Ptr<Socket> socket(new Socket(*this, accepted), false);
        host->AddConnection(accepted, socket);
        Address from;
        socket->GetPeerName(from);
        if (NotifyConnectionRequest(from)) {
            NotifyNewConnectionCreated(socket, from);
            socket->OfferRoom();
        } else {
            // The application never gets this socket, and does not hear of its end.
            const auto none = MakeNullCallback<void, Ptr<ns3::Socket>>();
            socket->SetCloseCallbacks(none, none);
            socket->isSendShut = true;
            Require(anabranch_abort(Engine(), accepted, NowNs()), "anabranch_abort");
        }
    }
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
    // Not Close, which throws away what the application has not read yet.
    if (isSendShut && !isReceiveShut && !isOver)
        ShutdownSend();
}

void Socket::HandleHostGone()
{
    listener = listener4 = 0;
    if (connection != 0 && !isOver) {
        lastStatistics = GetStatistics();
        isOver = true;
    }
}

// With ns-3's TCP, what has arrived can be read also after the end.
void Socket::KeepUnread()
{
    uint64_t unread = 0;
    Require(anabranch_readable_bytes(Engine(), connection, &unread), "anabranch_readable_bytes");
    if (unread == 0 || isReceiveShut)
        return;
    size_t length = 0;
    kept.resize(unread);
    Require(anabranch_recv(Engine(), connection, kept.data(), kept.size(), NowNs(), &length), "anabranch_recv");
    kept.resize(length);
    keptFrom = 0;
}

void Socket::HandleClosed(AnabranchCloseReason reason)
{
    Require(anabranch_addresses(Engine(), connection, &lastLocal, &lastRemote), "anabranch_addresses");
    lastStatistics = GetStatistics();
    KeepUnread();
    isOver = true;
    Require(anabranch_release(Engine(), connection), "anabranch_release");
    if (!isConnected) {
        // It may try again.
        connection = 0;
        windows = {{0, 0}};
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
