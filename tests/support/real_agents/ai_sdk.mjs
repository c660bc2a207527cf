// A minimal agent on the AI SDK: ai_sdk.mjs PROTOCOL URL MODEL PROMPT [--continue]
// AI_SDK is a directory with `ai`, `zod` and the provider packages in its node_modules.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { execSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.AI_SDK, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { streamText, tool, stepCountIs } = await load('ai');
const { z } = await load('zod');

const [protocol, url, name, prompt, resume] = process.argv.slice(2);
const options = { baseURL: `${url}/v1`, apiKey: 'dummy' };
const models = {
  anthropic: async () => (await load('@ai-sdk/anthropic')).createAnthropic(options)(name),
  chat: async () => (await load('@ai-sdk/openai-compatible')).createOpenAICompatible({ name: 'ttsr', ...options })(name),
  responses: async () => (await load('@ai-sdk/openai')).createOpenAI(options).responses(name),
};
const providerOptions = {
  anthropic: { thinking: { type: 'adaptive' } },
  openai: { store: false, include: ['reasoning.encrypted_content'] },
};

const edit = ({ filePath, oldString, newString }) => {
  const text = readFileSync(filePath, 'utf8');
  if (!text.includes(oldString)) throw new Error('oldString is not in the file');
  writeFileSync(filePath, text.replace(oldString, newString));
  return 'edited';
};
const tools = {
  read: tool({
    description: 'Read a file', inputSchema: z.object({ filePath: z.string() }),
    execute: async ({ filePath }) => readFileSync(filePath, 'utf8'),
  }),
  write: tool({
    description: 'Write a file', inputSchema: z.object({ filePath: z.string(), content: z.string() }),
    execute: async ({ filePath, content }) => { writeFileSync(filePath, content); return 'written'; },
  }),
  edit: tool({
    description: 'Edit a file',
    inputSchema: z.object({ filePath: z.string(), oldString: z.string(), newString: z.string() }),
    execute: async (input) => edit(input),
  }),
  bash: tool({
    description: 'Run a command', inputSchema: z.object({ command: z.string() }),
    execute: async ({ command }) => execSync(command, { encoding: 'utf8' }),
  }),
};

const session = join(process.env.HOME, 'ai-sdk-session.json');
const messages = resume && existsSync(session) ? JSON.parse(readFileSync(session, 'utf8')) : [];
messages.push({ role: 'user', content: prompt });
let failed = null;
const result = streamText({
  model: await models[protocol](), messages, tools, providerOptions, maxRetries: 0,
  stopWhen: stepCountIs(12), onError: ({ error }) => { failed = error; },
});
for await (const part of result.fullStream) {
  if (part.type === 'text-delta') process.stdout.write(part.text);
  else if (part.type === 'tool-call') console.log(`\n[${part.toolName}] ${JSON.stringify(part.input)}`);
  else if (part.type === 'tool-error' || part.type === 'error') failed = part.error;
}
console.log();
if (failed) {
  console.error(failed);
  process.exit(1);
}
writeFileSync(session, JSON.stringify([...messages, ...(await result.response).messages]));
