<?php
// The story with phpredis: phpredis.php PORT PROTOCOL create | add ID ... | ann | bob

const ITEMS = ['1-0' => ['item' => 'pen'], '2-0' => ['item' => 'ink'], '3-0' => ['item' => 'paper']];
const PATIENCE_MS = 20000;

function tell($value): void {
    echo json_encode($value), "\n";
}

// ['1-0' => fields] as [['1-0', fields]].
function entries(array $rows): array {
    return array_map(null, array_keys($rows), array_values($rows));
}

function take(Redis $redis, string $consumer, int $count, int $block): array {
    return entries($redis->xReadGroup('packers', $consumer, ['orders' => '>'], $count, $block)['orders']);
}

// Waits for an entry and acknowledges it; then waits for two and is killed with them in its hands.
function ann(Redis $redis): void {
    [[$id, $fields]] = take($redis, 'ann', 1, PATIENCE_MS);
    tell([[$id, $fields]]);
    tell($redis->xAck('orders', 'packers', [$id]));
    tell(take($redis, 'ann', 2, PATIENCE_MS));
    take($redis, 'ann', 1, 0);
}

// Finds what ann has left, and looks at everything.
function bob(Redis $redis): void {
    [$count, $first, $last, $owners] = $redis->xPending('orders', 'packers');
    tell([$count, $first, $last, array_map('intval', array_column($owners, 1, 0))]);
    $left = array_column($redis->xPending('orders', 'packers', '-', '+', 10), 0);
    tell(entries($redis->xClaim('orders', 'packers', 'bob', 0, $left)));
    tell($redis->xAck('orders', 'packers', ['2-0']));
    $rows = $redis->xPending('orders', 'packers', '-', '+', 10);
    tell([
        'pending' => array_map(fn($row) => [$row[0], $row[1], $row[3]], $rows),
        'group' => $redis->xInfo('GROUPS', 'orders')[0],
        'consumers' => array_map(
            fn($row) => [$row['name'], $row['pending']],
            $redis->xInfo('CONSUMERS', 'orders', 'packers'),
        ),
        'length' => $redis->xLen('orders'),
    ]);
}

function add(Redis $redis, string ...$ids): void {
    $redis->multi();
    foreach ($ids as $id) {
        $redis->xAdd('orders', $id, ITEMS[$id]);
    }
    tell($redis->exec());
}

function create(Redis $redis): void {
    if (!$redis->xGroup('CREATE', 'orders', 'packers', '0', true)) {
        throw new Exception($redis->getLastError());
    }
    tell('OK');
}

[, $port, , $part] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$redis->setOption(Redis::OPT_READ_TIMEOUT, -1);
$part($redis, ...array_slice($argv, 4));
