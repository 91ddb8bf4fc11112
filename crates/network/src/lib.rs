//! Sans-IO network models: a packet in at t, packets out at t'.
