# SPDX-License-Identifier: Apache-2.0
# A scenario of rack-attack, from Debian: ruby rack.rb PORT prints what happened as JSON. `steps` are
# requests of one client, and `ran` names them; `admitted` is of 8 clients at once with one address.
require "json"
require "rack"
require "rack/attack"
require "redis"

CLIENTS = 8
CALLS = 20
LIMIT = 25

Rack::Attack.cache.store = Redis.new(port: Integer(ARGV[0]))
Rack::Attack.throttle("ip", limit: LIMIT, period: 100_000_000) { |request| request.ip }
APP = Rack::Attack.new(->(_) { [200, {}, ["ok"]] })

def status(ip)
  APP.call(Rack::MockRequest.env_for("/", "REMOTE_ADDR" => ip))[0]
end

steps = Array.new(LIMIT + 2) { status("192.0.2.1") }
threads = Array.new(CLIENTS) { Thread.new { Array.new(CALLS) { status("192.0.2.2") } } }
puts JSON.generate(version: "Debian's", ran: "throttle: 27 requests", steps: steps, admitted: threads.flat_map(&:value).count(200))
