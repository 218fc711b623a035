package tollgrpc

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// header collects the metadata of all limits of one call. Each interceptor adds its limit, and
// replaces fields of the interceptors before it. gRPC cannot take metadata back, so no interceptor
// sends them at once. The outermost interceptor sends them when the handler sends its header or its
// first message, or when it returns.
type header struct {
	fields http.Header
	isSet  bool
}

type headerKey struct{}

// headerOf returns the header of the interceptors around this one, or a new one and a context with
// it, for the outermost.
func headerOf(ctx context.Context) (within context.Context, h *header, isOutermost bool) {
	if h, ok := ctx.Value(headerKey{}).(*header); ok {
		return ctx, h, false
	}
	h = &header{fields: http.Header{}}
	return context.WithValue(ctx, headerKey{}, h), h, true
}

// set passes the metadata to gRPC. A second call does nothing.
func (h *header) set(to func(metadata.MD) error) error {
	if h.isSet || len(h.fields) == 0 {
		return nil
	}
	h.isSet = true
	given := make(metadata.MD, len(h.fields))
	for name, values := range h.fields {
		given[strings.ToLower(name)] = values
	}
	return to(given)
}

// call is a call with one request, whose handler may send the header itself.
type call struct {
	grpc.ServerTransportStream
	header *header
}

func (c *call) SendHeader(given metadata.MD) error {
	if err := c.header.set(c.ServerTransportStream.SetHeader); err != nil {
		return err
	}
	return c.ServerTransportStream.SendHeader(given)
}

// layered is the stream that an interceptor gives to the next handler. Its context knows the limits
// that the call has passed. Only the outermost interceptor sets header, because only it sends the
// metadata.
type layered struct {
	grpc.ServerStream
	within context.Context
	header *header
}

func (s *layered) Context() context.Context { return s.within }

func (s *layered) SendHeader(given metadata.MD) error {
	if err := s.set(); err != nil {
		return err
	}
	return s.ServerStream.SendHeader(given)
}

func (s *layered) SendMsg(message any) error {
	if err := s.set(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(message)
}

func (s *layered) set() error {
	if s.header == nil {
		return nil
	}
	return s.header.set(s.ServerStream.SetHeader)
}
