// SPDX-License-Identifier: Apache-2.0
// SDKs as npm has them, through weir/fetch, against the API of test_client_sdks.py: each is refused once, and
// gets its answer. node sdks.mjs ADDRESS
import assert from 'node:assert/strict';
import http from 'node:http';

import Anthropic from '@anthropic-ai/sdk';
import { Octokit } from '@octokit/core';
import OpenAI from 'openai';
import * as undici from 'undici';
import { Session } from 'weir/client';
import { Dispatcher, fetchOf } from 'weir/fetch';

const api = `http://${process.argv[2]}`;
const messages = [{ role: 'user', content: 'hello' }];
const session = new Session({ tries: 3 });
const through = (scope) => fetchOf(session, { idempotencyKey: true, scope });

// Tells the API that a word has come: it sends the next one then.
async function got(text) {
  if (text)
    await new Promise((resolve, reject) => {
      http.get(`${api}/got`, (answer) => answer.on('end', resolve).resume()).on('error', reject);
    });
  return text ?? '';
}

const openai = new OpenAI({ apiKey: 'k', baseURL: `${api}/openai/v1`, maxRetries: 0, fetch: through('openai') });
const completion = await openai.chat.completions.create({ model: 'm', messages });
assert.equal(completion.choices[0].message.content, 'hello to you');
let said = '';
for await (const event of await openai.chat.completions.create({ model: 'm', messages, stream: true }))
  said += await got(event.choices[0].delta.content);
assert.equal(said, 'hello to you');

const anthropic = new Anthropic({ apiKey: 'k', baseURL: `${api}/anthropic`, maxRetries: 0, fetch: through('anthropic') });
assert.equal((await anthropic.messages.create({ model: 'm', max_tokens: 9, messages })).content[0].text, 'hello to you');

said = '';
for await (const event of await anthropic.messages.create({ model: 'm', max_tokens: 9, messages, stream: true }))
  if (event.type === 'content_block_delta')
    said += await got(event.delta.text);
assert.equal(said, 'hello to you');

const octokit = new Octokit({ baseUrl: `${api}/github`, request: { fetch: through('github') } });
assert.equal((await octokit.request('GET /user')).data.login, 'octocat');

undici.setGlobalDispatcher(new Dispatcher(session, { scope: 'undici' }));
assert.equal((await (await undici.request(`${api}/plain`)).body.json()).said, 'hello to you');
assert.equal((await (await undici.fetch(`${api}/plain`)).json()).said, 'hello to you');
assert.equal((await (await fetch(`${api}/plain`)).json()).said, 'hello to you'); // Node's own, by the same dispatcher
session.close();
console.log('passed');
