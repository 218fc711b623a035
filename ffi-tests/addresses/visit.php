<?php
// The same program as visit.c, in PHP.

declare(strict_types=1);

require __DIR__ . '/../../bindings/php/Tollbar.php';

$table = Tollbar\Table::open($argv[1], '1/day', 10_000);
foreach (array_slice($argv, 2) as $address) {
    try {
        $key = Tollbar\Table::addressKey($address);
    } catch (Tollbar\Error) {
        echo "no address\n";
        continue;
    }
    echo $table->allow($key) ? "passes\n" : "refused\n";
}
