"use strict";

/* Reading what was typed: each field gives a value or a sentence that says what is wrong with it. */
const Inputs = (() => {
  const MOST_UNITS = 1e7;
  const LARGEST_BIAS = 100;
  const MOST_STATES = 1000;
  const FIELDS = ["n", "m", "visible", "q", "hidden", "c"];
  const field = (name) => document.getElementById(name);

  function readNumber(text, example) {
    const plain = text.trim().replace(/^[−–]/, "-"); // typographic minus signs
    if (plain === "") return { error: `Enter a number, for example ${example}.` };
    const value = Number(plain);
    if (/^[+-]?\d+(\.\d*)?(e[+-]?\d+)?$|^[+-]?\.\d+(e[+-]?\d+)?$/i.test(plain)) return { value };
    if (/^[+-]?\d{1,3}([ ,’'_]\d{3})+$/.test(plain)) {
      return { error: `Write it without separators: ${plain.replace(/[^\d+-]/g, "")}.` };
    }
    if (/^[+-]?\d*,\d+$/.test(plain)) return { error: `Write it with a point: ${plain.replace(",", ".")}.` };
    return { error: `“${plain.slice(0, 20)}” is not a number; enter one like ${example}.` };
  }

  function readCount(text, example) {
    const read = readNumber(text, example);
    if (read.error) return read;
    if (read.value < 1) return { error: `A layer needs at least one unit, got ${text.trim()}.` };
    if (!Number.isInteger(read.value)) return { error: `The number of units must be whole, got ${text.trim()}.` };
    if (read.value > MOST_UNITS) return { error: `At most 10 000 000 units, got ${text.trim()}.` };
    return read;
  }

  function readStates(text) {
    const read = readNumber(text, "4 or 21");
    if (read.error) return read;
    if (!Number.isInteger(read.value) || read.value < 2 || read.value > MOST_STATES) {
      return { error: `The number of states must be whole, from 2 to ${MOST_STATES}, got ${text.trim()}.` };
    }
    return read;
  }

  function readBias(text) {
    const read = readNumber(text, "0 or -5");
    if (!read.error && Math.abs(read.value) > LARGEST_BIAS) {
      return { error: `The bias must lie between −100 and 100, got ${text.trim()}.` };
    }
    if (read.value === 0) read.value = 0; // no minus zero
    return read;
  }

  /* The inputs, or null; each bad field is told so in its place. */
  function read() {
    const labels = field("visible").value === "categorical";
    field("q-field").hidden = !labels;
    const results = {
      q: labels ? readStates(field("q").value) : { value: 0 },
      n: readCount(field("n").value, 784),
      m: readCount(field("m").value, 500),
      c: readBias(field("c").value),
    };
    let good = true;
    for (const [name, { error }] of Object.entries(results)) {
      field(`${name}-error`).textContent = error || "";
      if (error) field(name).setAttribute("aria-invalid", "true");
      else field(name).removeAttribute("aria-invalid");
      good = good && !error;
    }
    if (!good) return null;
    return {
      n: results.n.value, m: results.m.value, c: results.c.value,
      visible: labels ? `categorical(${results.q.value})` : field("visible").value, hidden: field("hidden").value,
    };
  }

  /* The address keeps the inputs, so that a result can be shared. */
  function toHash() {
    return `#${FIELDS.map((name) => `${name}=${encodeURIComponent(field(name).value.trim())}`).join("&")}`;
  }

  function fromHash(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    for (const name of FIELDS) {
      if (!given.has(name)) continue;
      const value = given.get(name), control = field(name);
      if (control.tagName !== "SELECT") control.value = value;
      else if ([...control.options].some((option) => option.value === value)) control.value = value;
    }
  }

  return { FIELDS, field, read, toHash, fromHash };
})();
