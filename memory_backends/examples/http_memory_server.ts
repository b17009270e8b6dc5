// A memory as a service in TypeScript: `node http_memory_server.ts [PORT]` (23.6 or later; 22 with
// --experimental-strip-types), `deno run -A` or `bun`; used as --backend http-memory:URL.
// Every exchange is an item, found again by the words that it shares with the question.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

type Message = { id: string; role: string; content: string; name?: string; time?: string };
type Item = { id: string; text: string; message_ids: string[] };
type Asked = { session: string; messages?: Message[]; query?: string; top_k?: number };

const kept = new Map<string, Item[]>();

function words(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []);
}

function answer(path: string, asked: Asked): object | null {
  const items = kept.get(asked.session) ?? [];
  switch (path) {
    case "/add": {
      const said = asked.messages ?? [];
      const label = ({ name, role }: Message) => name ?? (role === "user" ? "User" : "AI");
      const text = said.map((each) => `${label(each)}: ${each.content}`).join("\n");
      const item = { id: said[0].id, text, message_ids: said.map(({ id }) => id) };
      kept.set(asked.session, [...items.filter(({ id }) => id !== item.id), item]);
      return {};
    }
    case "/search": {
      const wanted = words(asked.query ?? "");
      const hits = items
        .map((item) => ({ ...item, score: [...words(item.text)].filter((word) => wanted.has(word)).length }))
        .filter((hit) => hit.score > 0)
        .sort((one, other) => other.score - one.score);
      return { hits: hits.slice(0, asked.top_k) };
    }
    case "/items":
      return { items };
    case "/reset":
      kept.delete(asked.session);
      return {};
    default:
      return null;
  }
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString("utf8");
  const asked: Asked = body ? JSON.parse(body) : { session: url.searchParams.get("session") ?? "" };
  const found = answer(url.pathname, asked);
  response.writeHead(found ? 200 : 404, { "Content-Type": "application/json" });
  response.end(JSON.stringify(found));
});

server.listen(Number(process.argv[2] ?? 8765), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
