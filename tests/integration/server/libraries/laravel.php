<?php
// SPDX-License-Identifier: Apache-2.0
// A scenario of Laravel's limiters, from Debian: php laravel.php PORT LIBRARY prints what happened as JSON,
// `steps` being calls one after the other on one key. php laravel.php PORT KEY CALLS is one of several
// clients at once, and prints how many calls were admitted.
require_once '/usr/share/php/Illuminate/Redis/autoload.php';
require_once '/usr/share/php/Illuminate/Cache/autoload.php';

use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository;
use Illuminate\Redis\Limiters\DurationLimiter;
use Illuminate\Redis\RedisManager;

const LIMIT = 25;
const CLIENTS = 8;
const CALLS = 20;
const SECONDS = 3600;

$manager = new RedisManager(null, 'phpredis', [
    'default' => ['host' => '127.0.0.1', 'port' => (int) $argv[1], 'database' => 0]]);
$limiter = new RateLimiter(new Repository(new RedisStore($manager)));

function duration($key, $limit)
{
    global $manager;
    return new DurationLimiter($manager->connection('default'), $key, $limit, SECONDS);
}

if (isset($argv[3])) {
    $admitted = 0;
    for ($i = 0; $i < $argv[3]; $i++)
        $admitted += duration($argv[2], LIMIT)->acquire();
    echo $admitted;
    exit;
}

$steps = [];
for ($i = 0; $i < 4; $i++) {
    $steps[] = [$limiter->tooManyAttempts('steps', 3), $limiter->remaining('steps', 3)];
    $steps[] = $limiter->hit('steps', SECONDS);
    $wait = $limiter->availableIn('steps');
    if ($wait <= 0 || $wait > SECONDS)
        throw new Exception("availableIn is $wait");
}
$steps[] = $limiter->clear('steps');
$steps[] = $limiter->attempts('steps');
for ($i = 0; $i < 4; $i++) {
    $one = duration('duration', 3);
    $steps[] = [$one->acquire(), $one->remaining, duration('duration', 3)->tooManyAttempts()];
}
duration('duration', 3)->clear();
$steps[] = duration('duration', 3)->acquire();

$clients = [];
for ($i = 0; $i < CLIENTS; $i++)
    $clients[] = popen(PHP_BINARY . ' ' . escapeshellarg(__FILE__) . " {$argv[1]} many " . CALLS, 'r');
$admitted = 0;
foreach ($clients as $client) {
    $admitted += (int) stream_get_contents($client);
    pclose($client);
}
echo json_encode([
    'version' => "Debian's", 'ran' => 'RateLimiter: tooManyAttempts, hit, remaining, availableIn, clear; '
        . 'DurationLimiter: acquire, tooManyAttempts, clear',
    'steps' => $steps, 'admitted' => $admitted]), "\n";
