/* SPDX-License-Identifier: Apache-2.0 */
/* see known.h; made by script/known-scripts */
#include "server/resp/script/known.h"

/* clang-format off */
const struct weir_known_script weir_known_scripts[] = {
    {"054143318f521948424aa25df61d7f7ba835a9d7", WEIR_SCRIPT_RATE_AT_MOST}, /* redis_rate v9.1.2 to v10.0.1 */
    {"0aa93fe6a34317527000a66828426c0ae2104618", WEIR_SCRIPT_INCREMENT_KEPT}, /* rate-limiter-flexible 6.0.0 to 11.4.0 */
    {"0b375fed3ba31d8ff89c0d87f05a47222c294639", WEIR_SCRIPT_BUCKET}, /* throttled-py 3.0.1 to 3.5.0 */
    {"0d23cf1ccf81ad1452ccf307e1938d99997a6073", WEIR_SCRIPT_INCREMENT}, /* limits 1.4.1 to 1.6 */
    {"10d56362301187055844271f4f041cf8f8dc537f", WEIR_SCRIPT_PYRATE_GCRA}, /* pyrate-limiter 4.5.1 to 4.5.1 */
    {"12a3befaf96dc1cd0dc2c2af0160972b6981b685", WEIR_SCRIPT_PYRATE_INTERVALS}, /* pyrate-limiter 3.2.1 to 4.3.1 */
    {"1869cf4de25b8cae14b152d492f866246c07a53c", WEIR_SCRIPT_GCRA_PEEK}, /* throttled-py 1.0.3 to 1.1.1 */
    {"19c9778cd6391e2ee9f90aa518bf56256d15b4ae", WEIR_SCRIPT_MOVING_TAKE}, /* limits 3.5.0 to 4.8.0 */
    {"1c5d436d6863e949247f4fa66fa1e32b7fa18da9", WEIR_SCRIPT_LARAVEL_TOO_MANY}, /* Laravel 12 to 12 */
    {"1e59736f3fc73dec85b1b0358ace96bab27e92a9", WEIR_SCRIPT_GCRA}, /* throttled-py 2.2.3 to 3.3.1 */
    {"29cc07bd431ccbf64637e5dcb60484560fdfa2da", WEIR_SCRIPT_LARAVEL_DURATION}, /* Laravel 12 to 12 */
    {"3558e5e19feda4d6fca7bd2770e9373874ec3b20", WEIR_SCRIPT_INCREMENT}, /* limits 2.0.3 to 2.0.3 */
    {"3e5979d2e18e05ce09fefed798c7dcce85173ad3", WEIR_SCRIPT_BUCKET}, /* throttled-py 3.0.1 to 3.5.0 */
    {"3f424a504987d231baa2e19159bb5def8ad32f87", WEIR_SCRIPT_COUNT_THEN_LIFE}, /* rate-limit-redis 3.0.2 to 4.1.2 */
    {"3f481dd9e75a7c63c2facb091af19e1ab17f2cc7", WEIR_SCRIPT_FASTIFY_BAN}, /* @fastify/rate-limit 9.0.1 to 9.1.0 */
    {"4acb9888e93cc67fd35114a27465403347a06e3b", WEIR_SCRIPT_FIXED}, /* throttled-py 1.0.3 to 3.5.0 */
    {"4c7d9ef62b3d4f8efd8d11d5d2fd1a56b1e723bc", WEIR_SCRIPT_FASTIFY_READ}, /* @fastify/rate-limit 11.1.0 to 11.2.0 */
    {"51d8e63a380bf7a715e9cc96b2fa6ad9e2e8788b", WEIR_SCRIPT_KOA}, /* async-ratelimiter 1.5.2 to 1.5.2 */
    {"566f5c6a17e5fddb9a10bf389f754edd0d899c61", WEIR_SCRIPT_COUNT_OR_ZERO}, /* ulule/limiter v3.11.2 to v3.11.2 */
    {"5872729d023db2ad81e4cb57649af58710668ffe", WEIR_SCRIPT_GCRA}, /* throttled-py 1.0.3 to 2.1.0 */
    {"628bd136a573a06b346879695681af12ccef300f", WEIR_SCRIPT_INCREMENT}, /* limits 2.3.3 to 5.8.0 */
    {"6451cdc7599bd26c524ecfadb8e3daa985d63baf", WEIR_SCRIPT_GCRA}, /* throttled-py 3.4.1 to 3.5.0 */
    {"685e05a9fb36b3eb6061e0f4217ed7a589f8ecde", WEIR_SCRIPT_BUCKET}, /* throttled-py 3.0.1 to 3.5.0 */
    {"6a4c0b819c399b081c9f8bfff73838ca4a8be5cd", WEIR_SCRIPT_TWO_WINDOWS_ALL}, /* throttled-py 1.0.3 to 2.0.2 */
    {"6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a", WEIR_SCRIPT_COUNT_AND_LIFE}, /* rate-limit-redis 4.1.2 to 6.0.1 */
    {"6b7cb6e1a2dd5a08f7f1a05e72887ef4cf07d050", WEIR_SCRIPT_MOVING_TAKE}, /* limits 2.1.1 to 2.2.0 */
    {"741eab638ba93ed71020bb821c45c022d0fa02c4", WEIR_SCRIPT_MOVING_TAKE}, /* limits 5.0.0 to 5.8.0 */
    {"76a566c51f92d8f643d16e0ef0101663d5380dba", WEIR_SCRIPT_SPRING}, /* Spring Cloud Gateway 3.0.8 to 3.1.9 */
    {"775635cca91092477cbcee85fd800accb6adc4b2", WEIR_SCRIPT_SPRING}, /* Spring Cloud Gateway 4.0.9 to 4.2.6 */
    {"78a479396f38a2ea10b97b0587076b8a6a9eb25b", WEIR_SCRIPT_TWO_WINDOWS_ALL}, /* throttled-py 2.1.0 to 2.1.0 */
    {"7ba76a0c250265be51a5673a98c031791909ed2d", WEIR_SCRIPT_GCRA}, /* throttled-py 2.2.3 to 3.3.1 */
    {"81dbecea94d2d10514719b20ed51faf711529d9d", WEIR_SCRIPT_WINDOW_OR_RESET}, /* rate-limit-redis 4.2.3 to 5.0.0 */
    {"8621c257a111c629836591d46b6676a696b9dce9", WEIR_SCRIPT_BUCKET}, /* throttled-py 1.0.3 to 2.2.3 */
    {"8890b089cb79a70e39d548f74e02f684a9afd118", WEIR_SCRIPT_GCRA}, /* throttled-py 1.0.3 to 1.1.1 */
    {"895b92e1712734e1b464999be23953485475357b", WEIR_SCRIPT_WINDOW}, /* rate-limit-redis 6.0.1 to 6.0.1 */
    {"8c3cbcae73181d9ec973bcf6e05287e9ce1e3bd2", WEIR_SCRIPT_GCRA}, /* throttled-py 3.4.1 to 3.5.0 */
    {"8d9d99ca5016d3ebae79cc18ae26f7090a9958c3", WEIR_SCRIPT_BUCKET}, /* throttled-py 1.0.3 to 2.2.3 */
    {"90b6d68823beeb34f07442b055f7712786bb4247", WEIR_SCRIPT_GCRA_PEEK}, /* throttled-py 3.4.1 to 3.5.0 */
    {"957dd5853a45ba2455f6c8b90798cb5d76a0acda", WEIR_SCRIPT_FIXED}, /* throttled-py 1.0.3 to 3.2.0 */
    {"9cab88b1455f88d9ec955a816bb2da7dab402cdb", WEIR_SCRIPT_PYRATE_WINDOWS}, /* pyrate-limiter 4.5.1 to 4.5.1 */
    {"a08c9c69b7c07ae2485190873b90d128a23e502d", WEIR_SCRIPT_LARAVEL_ADD}, /* Laravel 12 to 12 */
    {"a1de965f42e177aa339706bd580f049065eca79a", WEIR_SCRIPT_INCREMENT_NEW}, /* rate-limiter-flexible 2.0.0 to 11.4.0 */
    {"a3f9e982197e9e887f6b5dcb7ec273863bb83aad", WEIR_SCRIPT_FASTAPI}, /* fastapi-limiter 0.1.6 to 0.1.6 */
    {"a9fa8a8d69ceb20463c474b20870cdf343113a67", WEIR_SCRIPT_GCRA_PEEK}, /* throttled-py 1.0.3 to 3.3.1 */
    {"ab9a35aa62ed8fa50cf1c655a522698512c9b126", WEIR_SCRIPT_INCREMENT}, /* limits 2.1.1 to 2.2.0 */
    {"ad00ff6f099013f2aea94ed48c220cbf616c6a07", WEIR_SCRIPT_KOA}, /* async-ratelimiter 1.6.10 to 1.6.10 */
    {"ad795214f59fe26d6fdec07973836dd16586f5ec", WEIR_SCRIPT_MOVING_COUNT}, /* limits 5.0.0 to 5.8.0 */
    {"b10cc91ef32b1958f6e5518e47141af7ef8d20c0", WEIR_SCRIPT_TWO_WINDOWS_ALL}, /* throttled-py 2.1.0 to 2.1.0 */
    {"b72d57bf75a045b8d6f72ca5b553e356583723f0", WEIR_SCRIPT_FASTIFY_LIFE}, /* @fastify/rate-limit 10.2.2 to 10.2.2 */
    {"b8a19d47785922bb04e7a9fdb49e90d89be1b8af", WEIR_SCRIPT_FASTIFY}, /* @fastify/rate-limit 10.3.0 to 11.2.0 */
    {"b8ad044814552fc0bb2f111eddcd575dfcf9346b", WEIR_SCRIPT_TWO_WINDOWS}, /* throttled-py 2.2.3 to 3.5.0 */
    {"be8167afc95f25615961866ad639b736828f12b5", WEIR_SCRIPT_PYRATE_INTERVALS}, /* pyrate-limiter 4.4.0 to 4.4.0 */
    {"bec85d5af0739203306474d2cac591c3d6f907d2", WEIR_SCRIPT_MOVING_TAKE}, /* limits 3.1.6 to 3.4.0 */
    {"d12c85776287aa2a578c38543dd9088a2cf85f31", WEIR_SCRIPT_GCRA}, /* throttled-py 2.0.2 to 2.1.0 */
    {"d19f37c18768a509dbf1310a257bfc35be65609f", WEIR_SCRIPT_MOVING_TAKE}, /* limits 2.5.4 to 3.0.0 */
    {"d2a3aeb88bc5648c36fed2636c03c52d5ae2ce18", WEIR_SCRIPT_MOVING_TAKE}, /* limits 2.3.3 to 2.4.0 */
    {"d2fa85338609040e69a320746b48877574001859", WEIR_SCRIPT_GCRA_PEEK}, /* throttled-py 2.0.2 to 3.3.1 */
    {"d7edeb665e7a6038447a5fcfd62fd4a6682cc84e", WEIR_SCRIPT_GCRA_PEEK}, /* throttled-py 3.4.1 to 3.5.0 */
    {"e2be2bb446d8824c5a0ef425a63ad79984f4ceac", WEIR_SCRIPT_TWO_WINDOWS}, /* throttled-py 2.2.3 to 3.5.0 */
    {"e7a0a27d4101baabb124af209bb0245197a359a1", WEIR_SCRIPT_SLIDING_COUNTS}, /* limits 4.1 to 5.8.0 */
    {"e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7", WEIR_SCRIPT_SLIDING_TAKE}, /* limits 4.1 to 5.8.0 */
    {"eb38b1026c633919cbe91939bf26870e208b12cb", WEIR_SCRIPT_BUCKET}, /* throttled-py 3.0.1 to 3.5.0 */
    {"ebd682e30de074a6919bde872b507734c7c3ebe5", WEIR_SCRIPT_SWAP}, /* throttled v2.15.0 to v2.15.0 */
    {"eec77786d43c65f7fd568900b5d2b63b692318dc", WEIR_SCRIPT_SPRING}, /* Spring Cloud Gateway 2.0.4.RELEASE to 2.0.4.RELEASE */
    {"eeda3f8f943f4ac572fa61f88c0fa28de9f5ed44", WEIR_SCRIPT_TWO_WINDOWS_ALL}, /* throttled-py 1.0.3 to 2.0.2 */
    {"f1e0da9c495676ab6904eb80db1f2811d5347f58", WEIR_SCRIPT_NEST}, /* @nest-lab/throttler-storage-redis 1.0.0 to 1.2.0 */
    {"f2ef2962263bbe72f66f5bbd0da234e74d880068", WEIR_SCRIPT_MOVING_COUNT}, /* limits 4.0.1 to 4.8.0 */
    {"f4c2a591243f19291963b0bb0d3cfbd56d9fa184", WEIR_SCRIPT_BUCKET}, /* throttled-py 1.0.3 to 2.2.3 */
    {"f52a5b566060d79fd321d695df55bc918339c4aa", WEIR_SCRIPT_RATE}, /* redis_rate v9.1.2 to v10.0.1 */
    {"f74233f556d3f99c50b61169cf8aa8d5deb63fb2", WEIR_SCRIPT_INCREMENT_MS}, /* ulule/limiter v3.11.2 to v3.11.2 */
    {"f75a038cf153823b46ac3b5fbd151b2ff37349e1", WEIR_SCRIPT_BUCKET}, /* throttled-py 1.0.3 to 2.2.3 */
    {"f80d0c65a05e27559602a2b43fbe989df31fc5f6", WEIR_SCRIPT_FASTIFY_LIFE}, /* @fastify/rate-limit 10.0.1 to 10.1.1 */
};
/* clang-format on */
const unsigned weir_known_script_count = sizeof weir_known_scripts / sizeof *weir_known_scripts;
/* clang-format off */
const char weir_known_libraries[] =
    "@fastify/rate-limit, @nest-lab/throttler-storage-redis, fastapi-limiter, koa-ratelimit, "
    "Laravel, limits, pyrate-limiter, rate-limit-redis, rate-limiter-flexible, redis_rate, "
    "Spring Cloud Gateway, throttled, throttled-py, ulule/limiter";
/* clang-format on */
