<?php
// Symfony Messenger on its Redis transport: symfony.php PORT work NAME [TROUBLE], or send DELAY_MS ITEM ...
//
// A worker writes into the list `said` what it does, and stays for ever at the item that is its trouble.
// `torn` fails when it is first tried, `broken` always.

namespace Orders;

use Psr\Container\ContainerInterface;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;
use Symfony\Component\Messenger\EventListener\SendFailedMessageForRetryListener;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Retry\MultiplierRetryStrategy;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Worker;

require_once 'Symfony/Component/EventDispatcher/autoload.php';
require_once 'Symfony/Component/Messenger/autoload.php';

const RETRIES = 2;
const RETRY_MS = 50;

class Pack {
    public function __construct(public string $item) {}
}

// The one thing that a listener looks for.
class Only implements ContainerInterface {
    public function __construct(private object $thing) {}

    public function get(string $id): object {
        return $this->thing;
    }

    public function has(string $id): bool {
        return true;
    }
}

function connected(string $port): \Redis {
    $redis = new \Redis();
    $redis->connect('127.0.0.1', (int) $port);
    return $redis;
}

// What nobody has acknowledged for two seconds goes to the next who looks, which each does five times a second.
function transport(string $port, string $consumer): object {
    $options = [
        'stream' => 'orders', 'group' => 'packers', 'consumer' => $consumer,
        'delete_after_ack' => true, 'redeliver_timeout' => 2, 'claim_interval' => 200,
    ];
    return (new RedisTransportFactory())->createTransport("redis://127.0.0.1:$port", $options, new PhpSerializer());
}

function send(string $port, string $delay, string ...$items): void {
    $orders = transport($port, 'sender');
    foreach ($items as $item) {
        $orders->send(new Envelope(new Pack($item), [new DelayStamp((int) $delay)]));
    }
}

function work(string $port, string $name, string $trouble = ''): void {
    $book = connected($port);
    $pack = function (Pack $message) use ($book, $name, $trouble): void {
        $item = $message->item;
        $book->rPush('said', "$name takes $item");
        while ($item === $trouble) {
            sleep(1);
        }
        if ($item === 'broken' || ($item === 'torn' && $book->incr('torn') === 1)) {
            throw new \RuntimeException("it is $item");
        }
        $book->rPush('said', "$name packs $item");
    };
    $orders = transport($port, $name);
    $events = new EventDispatcher();
    $retry = new MultiplierRetryStrategy(RETRIES, RETRY_MS);
    $events->addSubscriber(new SendFailedMessageForRetryListener(new Only($orders), new Only($retry)));
    $events->addListener(WorkerMessageFailedEvent::class, function ($event) use ($book, $name): void {
        if (!$event->willRetry()) {
            $book->rPush('said', "$name rejects {$event->getEnvelope()->getMessage()->item}");
        }
    });
    $bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Pack::class => [$pack]]))]);
    (new Worker(['orders' => $orders], $bus, $events))->run(['sleep' => 20000]);
}

[, $port, $part] = $argv;
(__NAMESPACE__ . "\\$part")($port, ...array_slice($argv, 3));
