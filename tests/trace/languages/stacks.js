// What has V8 walk the stack: exceptions through many frames and from C++, garbage collections,
// callbacks from C++ into JavaScript and back, regular expressions, promises.
const crypto = require('crypto');
const fs = require('fs');
const zlib = require('zlib');

function deep(n) {
  if (n === 0) throw new RangeError('at the end');
  return deep(n - 1) + 1;
}

function overflow() {
  return overflow() + 1;
}

function caughtOf(f) {
  try {
    return f();
  } catch (error) {
    return error.constructor.name;
  }
}

function round(number) {
  const said = [];
  for (let i = 0; i < 20; i++) said.push(caughtOf(() => deep(i)));
  said.push(caughtOf(overflow));
  said.push(caughtOf(() => fs.readFileSync('/none')));
  said.push(caughtOf(() => JSON.parse('{')));
  const parts = [];
  for (let i = 0; i < 2000; i++) parts.push({i, text: 'x'.repeat(i % 50)});
  const text = JSON.stringify(parts, (key, value) => value);
  said.push(text.length, text.replace(/"i":(\d+)/g, (all, digits) => digits).length);
  said.push(zlib.inflateSync(zlib.deflateSync(text)).toString() === text);
  said.push(crypto.createHash('sha256').update(text).digest('hex'));
  parts.sort((a, b) => b.i - a.i);
  said.push(parts[number].i);
  gc();
  return said;
}

async function main() {
  for (let number = 0; number < 5; number++) {
    console.log(round(number).join(' '));
    await new Promise((resolve) => setImmediate(resolve));
    console.log((await Promise.all([1, 2].map(async (n) => {
      await fs.promises.stat('/');
      gc();
      return n;
    }))).length);
  }
}

main();
