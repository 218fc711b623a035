package tollgrpc_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollgrpc"
)

// dial returns a client of a server with these limits, over TCP. The server has gRPC's own health
// service: a unary call, and a stream of answers.
func dial(t *testing.T, unary, stream tollgrpc.Config) grpc_health_v1.HealthClient {
	t.Helper()
	limits := [2]*tollgrpc.Limiter{}
	for i, config := range []tollgrpc.Config{unary, stream} {
		limit, err := tollgrpc.New(config)
		if err != nil {
			t.Fatal(err)
		}
		limits[i] = limit
	}
	return serve(t, grpc.UnaryInterceptor(limits[0].Unary), grpc.StreamInterceptor(limits[1].Stream))
}

func serve(t *testing.T, options ...grpc.ServerOption) grpc_health_v1.HealthClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return grpc_health_v1.NewHealthClient(connection)
}

func watch(t *testing.T, client grpc_health_v1.HealthClient) error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	return err
}

// A refused unary call ends with ResourceExhausted and the wait. The metadata of every call have
// the number of permits left.
func TestUnaryCalls(t *testing.T) {
	client := dial(t, tollgrpc.Config{Policy: "2/h"}, tollgrpc.Config{Policy: "1/h"})
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		var header metadata.MD
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
		if status.Code(err) != want || header.Get("x-ratelimit-remaining")[0] != []string{"1", "0", "0"}[i] || header.Get("x-ratelimit-limit")[0] != "2" {
			t.Errorf("call %d: %v, %v", i, err, header)
		}
		if want == codes.OK {
			continue
		}
		details := status.Convert(err).Details()
		if len(details) != 1 {
			t.Fatalf("%v", details)
		}
		info, ok := details[0].(*errdetails.RetryInfo)
		if wait := info.GetRetryDelay().AsDuration(); !ok || wait <= 28*time.Minute || wait > 30*time.Minute {
			t.Errorf("%v", details)
		}
	}
}

// A stream takes a permit when it begins.
func TestStreams(t *testing.T) {
	client := dial(t, tollgrpc.Config{Policy: "1/h"}, tollgrpc.Config{Policy: "2/h"})
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		if err := watch(t, client); status.Code(err) != want {
			t.Errorf("stream %d: %v", i, err)
		}
	}
}

// received is a stream of so many messages.
type received struct {
	grpc.ServerStream
	left int
}

func (r *received) Context() context.Context    { return context.Background() }
func (r *received) SetHeader(metadata.MD) error { return nil }
func (r *received) RecvMsg(any) error           { r.left--; return nil }

// With Messages a stream takes a permit for each message that it receives.
func TestMessages(t *testing.T) {
	for _, each := range []bool{false, true} {
		key := func(context.Context, string) string { return "ann" }
		limit, err := tollgrpc.New(tollgrpc.Config{Policy: "3/h", Messages: each, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		stream := &received{left: 10}
		err = limit.Stream(nil, stream, &grpc.StreamServerInfo{FullMethod: "/s/m"}, func(_ any, stream grpc.ServerStream) error {
			for range 10 {
				if err := stream.RecvMsg(nil); err != nil {
					return err
				}
			}
			return nil
		})
		want := map[bool]codes.Code{false: codes.OK, true: codes.ResourceExhausted}[each]
		if status.Code(err) != want || each != (stream.left == 6) {
			t.Errorf("messages %v: %v, %d messages left", each, err, stream.left)
		}
	}
}

// Keys of metadata, costs by the method, exempt methods, and calls without a key.
func TestKeysAndCosts(t *testing.T) {
	const check = "/grpc.health.v1.Health/Check"
	client := dial(t, tollgrpc.Config{
		Policy: "4/h", Key: tollgrpc.Metadata("x-user"), Cost: func(_ context.Context, method string) uint64 {
			return map[bool]uint64{true: 2, false: 9}[method == check]
		},
	}, tollgrpc.Config{Policy: "1/h", Exempt: func(_ context.Context, method string) bool { return method != check }})
	ask := func(user string) codes.Code {
		ctx := context.Background()
		if user != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-user", user)
		}
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return status.Code(err)
	}
	for i, want := range []struct {
		user string
		code codes.Code
	}{{"ann", codes.OK}, {"ann", codes.OK}, {"ann", codes.ResourceExhausted}, {"bob", codes.OK}, {"", codes.PermissionDenied}} {
		if code := ask(want.user); code != want.code {
			t.Errorf("call %d: %s", i, code)
		}
	}
	for range 3 {
		if err := watch(t, client); err != nil {
			t.Error(err)
		}
	}
	if _, err := tollgrpc.New(tollgrpc.Config{Policy: "3/dy"}); err == nil {
		t.Error("a wrong policy is accepted")
	}
}

// C1: limits whose interceptors follow each other are one answer, for a call and for a stream: each
// field comes once, for the limit that binds, and a refusal charges no other limit.
func TestStackedLimitsAreOneAnswer(t *testing.T) {
	for _, order := range [][]string{{"wide", "tight"}, {"tight", "wide"}} {
		tables := map[string]*tollbar.Table{}
		var unary []grpc.UnaryServerInterceptor
		var stream []grpc.StreamServerInterceptor
		for _, name := range order {
			table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, map[string]string{"wide": "100/day", "tight": "4/day"}[name])
			if err != nil {
				t.Fatal(err)
			}
			limit, err := tollgrpc.New(tollgrpc.Config{Name: name, Table: table, Key: func(context.Context, string) string { return "ann" }})
			if err != nil {
				t.Fatal(err)
			}
			tables[name], unary, stream = table, append(unary, limit.Unary), append(stream, limit.Stream)
		}
		client := serve(t, grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...))
		for call := range 8 {
			var given metadata.MD
			var err error
			if call%2 == 0 {
				_, err = client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&given))
			} else {
				ctx, cancel := context.WithCancel(context.Background())
				watching, begun := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
				if begun != nil {
					t.Fatal(begun)
				}
				_, err = watching.Recv()
				given, _ = watching.Header()
				cancel()
			}
			admitted := min(call+1, 4)
			if want := map[bool]codes.Code{true: codes.OK, false: codes.ResourceExhausted}[call < 4]; status.Code(err) != want {
				t.Errorf("%v, call %d: %v", order, call, err)
			}
			for name, want := range map[string]string{"x-ratelimit-limit": "4", "x-ratelimit-remaining": fmt.Sprint(4 - admitted)} {
				if got := given.Get(name); len(got) != 1 || got[0] != want {
					t.Errorf("%v, call %d: %s is %v, not %s", order, call, name, got, want)
				}
			}
			if left, err := tables["wide"].Under(0).Peek("ann", 1); err != nil || left.Remaining != uint64(100-admitted) {
				t.Errorf("%v, call %d: %d left (%v)", order, call, left.Remaining, err)
			}
		}
	}
}
