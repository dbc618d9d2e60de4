package main

import (
	"os"

	"github.com/gomodule/redigo/redis"
)

func main() {
	client, err := redis.DialURL(os.Getenv("REDIS_URL"))
	check(err)
	defer client.Close()
	for _, start := range []string{"0", ">"} {
		for {
			order, price := next(client, start)
			if order == "" {
				break
			}
			_, err = client.Do("INCRBY", "total", price)
			check(err)
			_, err = client.Do("XACK", "orders", "kitchen", order)
			check(err)
		}
	}
}

func next(client redis.Conn, start string) (order, price string) {
	words := redis.Args{"GROUP", "kitchen", "alice", "COUNT", 1, "STREAMS", "orders", start}
	streams, err := redis.Values(client.Do("XREADGROUP", words...))
	if err == redis.ErrNil {
		return "", ""
	}
	check(err)
	entries, err := redis.Values(streams[0].([]interface{})[1], nil)
	check(err)
	if len(entries) == 0 {
		return "", ""
	}
	entry := entries[0].([]interface{})
	order, err = redis.String(entry[0], nil)
	check(err)
	fields, err := redis.StringMap(entry[1], nil)
	check(err)
	return order, fields["price"]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
