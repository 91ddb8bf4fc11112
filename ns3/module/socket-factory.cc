// SPDX-License-Identifier: GPL-2.0-only
#include "socket-factory.h"

#include "socket.h"

using namespace ns3;

namespace anabranch {

NS_OBJECT_ENSURE_REGISTERED(SocketFactory);

TypeId SocketFactory::GetTypeId()
{
    static TypeId id = TypeId("anabranch::SocketFactory")
                           .SetParent<ns3::SocketFactory>()
                           .SetGroupName("Anabranch")
                           .AddConstructor<SocketFactory>();
    return id;
}

void SocketFactory::SetHost(Ptr<Host> of)
{
    host = of;
}

Ptr<ns3::Socket> SocketFactory::CreateSocket()
{
    const Ptr<Socket> socket = CreateObject<Socket>();
    socket->SetHost(host);
    return socket;
}

void SocketFactory::DoDispose()
{
    host = nullptr;
    ns3::SocketFactory::DoDispose();
}

} // namespace anabranch
