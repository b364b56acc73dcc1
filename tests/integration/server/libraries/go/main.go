// SPDX-License-Identifier: Apache-2.0
// Scenarios of Go's limiter libraries: go run . PORT LIBRARY prints what happened as JSON.
// `steps` are calls one after the other on one key, `ran` names them, `version` is the library's;
// `admitted` is of 8 clients at once on another key.
package main

import (
    "context"
    "encoding/json"
    "fmt"
    "os"
    "runtime/debug"
    "sync"
    "sync/atomic"
    "time"

    "github.com/go-redis/redis_rate/v10"
    "github.com/redis/go-redis/v9"
    "github.com/throttled/throttled/v2"
    "github.com/throttled/throttled/v2/store/goredisstore.v9"
    ulule "github.com/ulule/limiter/v3"
    ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const (
    clients = 8
    calls   = 20
    limit   = 25
)

var all = context.Background()

type library struct {
    module, ran string
    admits func(key string) bool
    steps  func(key string) []any
}

func check(err error) {
    if err != nil {
        fmt.Fprintln(os.Stderr, err)
        os.Exit(1)
    }
}

func within(wait time.Duration) {
    if wait < -1 || wait > time.Hour+time.Second {
        check(fmt.Errorf("a wait of %v", wait))
    }
}

func redisRate(client *redis.Client) library {
    limiter, perHour := redis_rate.NewLimiter(client), redis_rate.PerHour(limit)
    reply := func(result *redis_rate.Result, err error) []any {
        check(err)
        within(result.ResetAfter)
        return []any{result.Allowed, result.Remaining, result.RetryAfter == -1}
    }
    return library{
        module: "github.com/go-redis/redis_rate/v10",
        ran:    "Allow, AllowN, AllowAtMost, Reset",
        admits: func(key string) bool { return reply(limiter.Allow(all, key, perHour))[0].(int) > 0 },
        steps: func(key string) []any {
            steps := []any{
                reply(limiter.Allow(all, key, perHour)), reply(limiter.AllowN(all, key, perHour, 20)),
                reply(limiter.AllowN(all, key, perHour, 10)),
                reply(limiter.AllowAtMost(all, key, perHour, 3)),
                reply(limiter.AllowAtMost(all, key, perHour, 3)),
                reply(limiter.AllowAtMost(all, key, perHour, 3)),
            }
            check(limiter.Reset(all, key))
            return append(steps, reply(limiter.Allow(all, key, perHour)))
        },
    }
}

func throttledGCRA(client *redis.Client) library {
    store, err := goredisstore.NewCtx(client, "throttled:")
    check(err)
    limiter, err := throttled.NewGCRARateLimiterCtx(
        store, throttled.RateQuota{MaxRate: throttled.PerHour(limit), MaxBurst: limit - 1})
    check(err)
    limiter.SetMaxCASAttemptsLimit(1000)
    use := func(key string, n int) []any {
        limited, result, err := limiter.RateLimitCtx(all, key, n)
        check(err)
        within(result.ResetAfter)
        return []any{limited, result.Limit, result.Remaining}
    }
    return library{
        module: "github.com/throttled/throttled/v2",
        ran:    "GCRARateLimiterCtx over goredisstore: RateLimitCtx",
        admits: func(key string) bool { return !use(key, 1)[0].(bool) },
        steps: func(key string) []any {
            return []any{use(key, 1), use(key, 20), use(key, 10), use(key, 4), use(key, 1)}
        },
    }
}

func ululeLimiter(client *redis.Client) library {
    store, err := ululeredis.NewStore(client)
    check(err)
    perHour := ulule.Rate{Period: time.Hour, Limit: limit}
    limiter := ulule.New(store, perHour)
    reply := func(result ulule.Context, err error) []any {
        check(err)
        within(time.Until(time.Unix(result.Reset, 0)) + time.Second) // whole seconds
        return []any{result.Limit, result.Remaining, result.Reached}
    }
    return library{
        module: "github.com/ulule/limiter/v3",
        ran:    "Get, Peek, Increment, Reset",
        admits: func(key string) bool { return !reply(limiter.Get(all, key))[2].(bool) },
        steps: func(key string) []any {
            return []any{
                reply(limiter.Peek(all, key)), reply(limiter.Get(all, key)),
                reply(limiter.Increment(all, key, 20)), reply(limiter.Peek(all, key)),
                reply(limiter.Increment(all, key, 10)), reply(limiter.Get(all, key)),
                reply(limiter.Reset(all, key)), reply(limiter.Get(all, key)),
            }
        },
    }
}

// Without its leading v, as the other registries have it.
func versionOf(module string) string {
    info, _ := debug.ReadBuildInfo()
    for _, each := range info.Deps {
        if each.Path == module {
            return each.Version[1:]
        }
    }
    return ""
}

func main() {
    libraries := map[string]func(*redis.Client) library{
        "redis_rate": redisRate, "throttled": throttledGCRA, "ulule/limiter": ululeLimiter,
    }
    open := func() library {
        client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
        return libraries[os.Args[2]](client)
    }
    first := open()
    steps := first.steps("steps")
    var admitted atomic.Int64
    var group sync.WaitGroup
    for i := 0; i < clients; i++ {
        group.Add(1)
        go func() {
            defer group.Done()
            one := open()
            for j := 0; j < calls; j++ {
                if one.admits("many") {
                    admitted.Add(1)
                }
            }
        }()
    }
    group.Wait()
    check(json.NewEncoder(os.Stdout).Encode(map[string]any{
        "version": versionOf(first.module), "ran": first.ran,
        "steps": steps, "admitted": admitted.Load()}))
}
