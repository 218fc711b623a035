<?php
// A page that each address may open three times a minute. All workers share the table.
//
//     PHP_CLI_SERVER_WORKERS=8 php -d ffi.enable=1 -S 127.0.0.1:8080 bindings/php/example.php

declare(strict_types=1);

require __DIR__ . '/Tollbar.php';

use Tollbar\Table;

/** Whether the client may open the page. If not, the answer says when it may. */
function access(string $client): bool
{
    $visits = Table::open(getenv('VISITS') ?: '/dev/shm/visits', '3/min', 100_000);
    $decision = $visits->check($client);
    foreach ($visits->fields('visits', $client, $decision) as $field => $value) {
        header("$field: $value");
    }
    if (!$decision->allowed) {
        http_response_code(429);
        echo "too many requests\n";
    }
    return $decision->allowed;
}

if (access(Table::addressKey($_SERVER['REMOTE_ADDR']))) {
    echo "welcome\n";
}
