// SPDX-License-Identifier: Apache-2.0
// The types as a program in CommonJS uses them.
import weir = require('weir');
import client = require('weir/client');
import testing = require('weir/testing');

const limits: weir.Weir = weir.open({ limits: [{ name: 'one', key: [], rate: '1/h' }] });
const answer: weir.Answer = limits.check({ attributes: { user: 7 } });
const session = new client.Session();
session.close();
testing.open({ limits: [] }).close();
limits.close();
console.log('passed', answer.allowed);
