import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { AdjudicationRound } from '../../src/adjudication/round.js';
import { AdjudicationServer } from '../../src/adjudication/web/server.js';
import { audit } from '../../src/audit/audit.js';
import { type Desk, LEAKS, makeDesk } from './support.js';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
/** Where to keep pictures of the page, for a person to look at. */
const PICTURES = process.env.BOUNDBOOK_SCREENSHOTS;

let desk: Desk;
let round: AdjudicationRound;
let server: AdjudicationServer;
let address: string;

beforeEach(async () => {
  desk = await makeDesk([1, 4, 6]);
  const opened = await AdjudicationRound.open(desk.root, undefined, { duplicates: 0.3 }, desk.book.now);
  if (opened === null) throw new Error('nothing waits');
  round = opened;
  server = new AdjudicationServer(round);
  address = await server.listen(0);
});

afterEach(async () => {
  await server.stop();
  round.end();
  desk.remove();
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

function ask(path: string, headers: Record<string, string> = {}, form?: string): Promise<Answer> {
  const { port } = new URL(address);
  return new Promise((resolve, reject) => {
    const method = form === undefined ? 'GET' : 'POST';
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    sent.on('error', reject).end(form);
  });
}

describe('the server', () => {
  const base = (): string => new URL(address).pathname.replace(/\/$/, '');

  it('listens on the loopback address alone, under a token of 192 bits', () => {
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[A-Za-z0-9_-]{32}\/$/);
  });

  it('shows nothing without the token, to another name, or to another site', async () => {
    for (const path of [
      '/',
      '/favicon.ico',
      `/${'A'.repeat(32)}/`,
      `${base()}x/`,
      `${base().slice(0, -1)}/`,
    ]) {
      const { status, body } = await ask(path);
      expect([path, status]).toEqual([path, 404]);
      expect(body).not.toContain('proxy said no');
    }
    const { host } = new URL(address);
    expect((await ask(`${base()}/`, { host: 'evil.example' })).status).toBe(403);
    expect((await ask(`${base()}/`, { host: `evil.example:${host.split(':')[1]}` })).status).toBe(403);
    expect((await ask(`${base()}/close`, { host, origin: 'http://evil.example' }, '')).status).toBe(403);
    expect((await ask(`${base()}/close`, { host, origin: 'null' }, '')).status).toBe(403);
    expect(round.progress().judged).toBe(0);
  });

  it('lets nothing load, run or frame the page, and lets nobody else read it', async () => {
    const { headers } = await ask(`${base()}/close`);
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
    );
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  it('answers hostile requests with a page, and judges nothing by them', async () => {
    const alias = round.questions()[0]?.alias ?? '';
    const cases: readonly (readonly [string, string | undefined, number])[] = [
      ['/item/nothing', undefined, 409],
      ['/item/%3Cscript%3E', undefined, 409],
      [`/item/${alias}/piece/999`, undefined, 404],
      [`/item/${alias}/piece/__proto__`, undefined, 404],
      ['/verdict', undefined, 404],
      ['/verdict', 'alias=x', 409],
      ['/verdict', `alias=${alias}&verdict=guilty&reason=one+two+three`, 422],
      ['/verdict', `alias=${alias}&verdict=model&reason=short`, 422],
      ['/verdict', `reason=${'x'.repeat(70_000)}`, 409],
      ['/close', '', 409],
    ];
    for (const [path, form, status] of cases) {
      const answer = await ask(base() + path, {}, form).catch(() => ({ status, body: '' }));
      expect([path, form?.slice(0, 40), answer.status]).toEqual([path, form?.slice(0, 40), status]);
      expect(answer.body).not.toContain('<script');
    }
    expect(round.progress().judged).toBe(0);
  });

  it('one of two equal verdicts at once is taken', async () => {
    const alias = round.questions()[0]?.alias ?? '';
    const form = `alias=${alias}&verdict=model&reason=one+two+three`;
    const answers = await Promise.all([
      ask(`${base()}/verdict`, {}, form),
      ask(`${base()}/verdict`, {}, form),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 409]);
  });
});

describe.skipIf(CHROMIUM === undefined)('the page, in Chromium (needs chromium on this host)', () => {
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];

  beforeAll(async () => {
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
    browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args });
  }, 60_000);
  afterAll(() => browser?.close());
  beforeEach(async () => {
    problems.length = 0;
    page = await browser.newPage();
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('request', (sent) => {
      if (new URL(sent.url()).host !== new URL(address).host) problems.push(`foreign: ${sent.url()}`);
    });
  });
  afterEach(() => page.close());

  test('from the first item to the figure, without an arm or an outcome in sight', {
    timeout: 60_000,
  }, async () => {
    await page.goto(address);
    const total = round.progress().questions;
    expect(total).toBe(4);
    for (let i = 0; i < total; i++) {
      const seen = await page.content();
      expect(await page.textContent('section[aria-label=Evidence]')).toContain(
        'proxy said no: upstream closed',
      );
      for (const leak of LEAKS) expect(seen).not.toContain(leak);
      // What a server answered is text, whatever it holds.
      expect(await page.locator('pre script').count()).toBe(0);
      expect(await page.textContent('section[aria-label=Evidence]')).toContain('<script>alert(1)</script>');
      await page.fill('#reason', 'bad luck');
      await page.click('button[value=model]');
      expect(await page.textContent('[role=alert]')).toBe('a reason has at least 3 words');
      expect(await page.inputValue('#reason')).toBe('bad luck');
      await page.fill('#reason', 'the proxy closed <b>it</b>');
      await page.click(`button[value=${i % 2 === 0 ? 'model' : 'cannot-tell'}]`);
      await expect.poll(() => round.progress().judged, { timeout: 10_000 }).toBe(i + 1);
      await page.waitForURL(/\/(close|item\/[0-9a-f]{16})$/);
    }
    expect(page.url()).toMatch(/\/close$/);
    await page.click('text=Open and apply all verdicts');
    expect(await page.textContent('main')).toMatch(
      /4 verdicts were opened, 3 applied; [01] of 1 items judged twice agree/,
    );
    expect(await server.closed).toMatchObject({ verdicts: 4, applied: 3, pairs: 1 });
    expect(problems.filter((text) => !/422/.test(text))).toEqual([]);
    expect((await audit(desk.root, undefined)).findings).toEqual([]);
  });

  test('search marks what it finds, and finds nothing that is masked', async () => {
    await page.goto(address);
    await page.fill('#q', 'UPSTREAM');
    await page.press('#q', 'Enter');
    expect(await page.textContent('[role=status]')).toBe('1 lines');
    expect(await page.textContent('mark')).toBe('upstream');
    await page.fill('#q', '0.7071');
    await page.press('#q', 'Enter');
    expect(await page.textContent('[role=status]')).toBe('Nothing in the evidence holds it.');
    await page.fill('#q', '"><img src=x onerror=alert(1)>');
    await page.press('#q', 'Enter');
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.inputValue('#q')).toBe('"><img src=x onerror=alert(1)>');
    expect(problems).toEqual([]);
  });

  test('a verdict by keyboard alone', async () => {
    await page.goto(address);
    await page.focus('#reason');
    await page.keyboard.type('the host lost its network');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.value')).toBe('infrastructure');
    await page.keyboard.press('Enter');
    await expect.poll(() => round.progress().judged, { timeout: 10_000 }).toBe(1);
  });

  test.each([
    [1280, 'light'],
    [375, 'light'],
    [375, 'dark'],
    [1280, 'dark'],
  ] as const)('fits %i px, %s', async (width, colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await page.goto(address);
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(width);
    for (const button of await page.locator('button').all()) {
      const box = await button.boundingBox();
      expect(box?.height).toBeGreaterThanOrEqual(44);
    }
    const contrast = await page.evaluate(CONTRAST);
    expect(contrast).toBeGreaterThanOrEqual(4.5);
    if (PICTURES !== undefined)
      await page.screenshot({ path: `${PICTURES}/adjudicate-${width}-${colorScheme}.png`, fullPage: true });
    expect(problems).toEqual([]);
  });
});

/** The least contrast (WCAG 2.2) of text that stands in the page, against the nearest ground behind it. */
const CONTRAST = `(() => {
  const rgb = (text) => (text.match(/[0-9.]+/g) ?? []).map(Number);
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll('p, a, button, h1, h2, label, summary, pre, code, li')];
  return Math.min(...texts.map((one) => {
    const [a, b] = [light(rgb(getComputedStyle(one).color)), light(ground(one))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
})()`;
