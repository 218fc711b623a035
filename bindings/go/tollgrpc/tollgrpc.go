// Package tollgrpc limits the rate of calls to a gRPC server, by interceptors.
//
//	limit, err := tollgrpc.New(tollgrpc.Config{Policy: "100/s burst 20"})
//	...
//	server := grpc.NewServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
//
// A refused call ends with the code ResourceExhausted and, if waiting helps, the detail RetryInfo.
// A call without a key ends with PermissionDenied. The header metadata of each call have what a
// response of package tollhttp has: x-ratelimit-limit, x-ratelimit-remaining and others.
package tollgrpc

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// Config is the configuration of a limit. Either Policy or Table is required.
type Config struct {
	// Name in the metadata that have names. Empty means "default".
	Name string
	// Policy, such as "100/min burst 20", of a table in this process's memory for this limit alone.
	Policy string
	// Capacity is the number of keys of that table that can have a debt at one time. 0 means
	// 100,000.
	Capacity uint64
	// Table, in place of Policy, is a table of the caller, and Number the policy's number there.
	// The caller must keep it open.
	Table  *tollbar.Table
	Number uint32
	// Fields are the header metadata. 0 means retry-after and x-ratelimit-limit, -remaining and
	// -reset.
	Fields tollbar.HTTPFields
	// Key returns the key of a call to a method such as "/package.Service/Method". Nil means
	// [PeerAddr].
	Key func(ctx context.Context, method string) string
	// Cost returns the permits that a call takes. Nil means 1.
	Cost func(ctx context.Context, method string) uint64
	// Exempt reports whether a call passes without a charge. Nil: no call does.
	Exempt func(ctx context.Context, method string) bool
	// Messages: a stream takes its cost again for each message that it receives after the first.
	// Without it a stream takes its cost once.
	Messages bool
}

// Limiter limits the calls of servers. Any number of servers may use it.
type Limiter struct {
	config Config
	limit  *tollhttp.KeyLimit
}

// New makes a Limiter. The error is that of [tollhttp.NewKeyLimit].
func New(config Config) (*Limiter, error) {
	limit, err := tollhttp.NewKeyLimit(tollhttp.KeyOptions{
		Name: config.Name, Policy: config.Policy, Capacity: config.Capacity, Table: config.Table,
		Number: config.Number, Fields: config.Fields,
	})
	if err != nil {
		return nil, err
	}
	if config.Key == nil {
		config.Key = PeerAddr
	}
	return &Limiter{config, limit}, nil
}

// Unary is the interceptor of calls with one request.
//
// Limits whose interceptors follow each other (grpc.ChainUnaryInterceptor) are one answer: the
// metadata describe all of them, and one that refuses gives back what those before it were charged.
func (l *Limiter) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	ctx, header, isOutermost := headerOf(ctx)
	if stream := grpc.ServerTransportStreamFromContext(ctx); isOutermost && stream != nil {
		// This fails only if the handler has sent the header itself. Then call.SendHeader has added
		// the metadata.
		defer func() { _ = header.set(stream.SetHeader) }()
		ctx = grpc.NewContextWithServerTransportStream(ctx, &call{stream, header})
	}
	ctx, err := l.take(ctx, ctx, header.fields, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return handler(ctx, request)
}

// Stream is the interceptor of calls with streams. Several of them are one answer, as those of
// Unary are.
func (l *Limiter) Stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) error {
	within, header, isOutermost := headerOf(stream.Context())
	next := &layered{ServerStream: stream}
	if isOutermost {
		next.header = header
		defer func() { _ = next.set() }()
	}
	var err error
	next.within, err = l.take(within, within, header.fields, info.FullMethod)
	if err != nil {
		return err
	}
	if l.config.Messages {
		return handler(server, &messages{ServerStream: next, limiter: l, method: info.FullMethod})
	}
	return handler(server, next)
}

// messages is a stream that takes permits for each message that it receives after the first.
type messages struct {
	grpc.ServerStream
	limiter *Limiter
	method  string
	begun   bool
}

// RecvMsg receives a message, and returns the refusal if the limit refuses it.
func (m *messages) RecvMsg(message any) error {
	if err := m.ServerStream.RecvMsg(message); err != nil || !m.begun {
		m.begun = true
		return err
	}
	// A new context, because other limits are not charged for this message, and a refusal must give
	// nothing back to them. The fields are dropped, because the header has been sent.
	_, err := m.limiter.take(m.Context(), context.Background(), http.Header{}, m.method)
	return err
}

// take takes the permits of a call, and adds its header fields. `outer` knows the limits that the
// call has passed, and the context that take returns knows this one, too. The error is a status.
func (l *Limiter) take(ctx, outer context.Context, fields http.Header, method string) (context.Context, error) {
	if l.config.Exempt != nil && l.config.Exempt(ctx, method) {
		return outer, nil
	}
	cost := uint64(1)
	if l.config.Cost != nil {
		cost = l.config.Cost(ctx, method)
	}
	within, decision, err := l.limit.Check(outer, fields, l.config.Key(ctx, method), cost)
	switch {
	case errors.Is(err, tollbar.ErrMissingKey):
		return within, status.Error(codes.PermissionDenied, "the call has no key that it could be counted by")
	case err != nil:
		return within, status.Error(codes.Internal, err.Error())
	case !decision.Allowed():
		return within, refusal(decision)
	}
	return within, nil
}

// refusal is the status of a refused call.
func refusal(decision tollbar.Decision) error {
	refused := status.New(codes.ResourceExhausted, "too many calls: "+decision.Reason.String())
	if decision.RetryAfter == tollbar.Forever {
		return refused.Err()
	}
	detailed, err := refused.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(decision.RetryAfter)})
	if err != nil {
		return refused.Err()
	}
	return detailed.Err()
}

// PeerAddr returns the key of the connection's remote address. [tollhttp.AddressKey] says which
// bits the key has. It is empty if the connection has no address (a Unix socket). Behind a proxy it
// is the proxy's.
func PeerAddr(ctx context.Context, _ string) string {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	return tollhttp.AddressKey(from.Addr.String())
}

// Metadata returns a key function for calls whose client sends its key in a field of the metadata,
// such as a token that an interceptor before this one has checked.
func Metadata(name string) func(context.Context, string) string {
	return func(ctx context.Context, _ string) string {
		if values := metadata.ValueFromIncomingContext(ctx, name); len(values) != 0 {
			return values[0]
		}
		return ""
	}
}
