#include "Rts.h"
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CAPABILITY ((char *)&MainCapability)
#define BASE_OF_CAPABILITY 24
#define BASE_CURRENT_TSO 872
#define BASE_CAPABILITY_NO 920
#define STATS_WORDS 40

void spin(int ms)
{
	struct timespec from, now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

/* What is written in place of numbers and pointers. */
static const uint64_t lies[] = {0, 1, ~0ul, 1ul << 63, (1ul << 63) - 1, 1ul << 32, 0x7fffffff, 0x1000, 0xdeadbeefcafe};
#define LIES (sizeof lies / sizeof *lies)

/* symbol finds a variable of the run-time system that is local to it, by the program's own symbol table. */
static void *symbol(const char *name)
{
	static const char *image;
	static off_t size;
	if (!image) {
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		struct stat st;
		fstat(fd, &st);
		size = st.st_size;
		image = mmap(0, size, PROT_READ, MAP_PRIVATE, fd, 0);
		close(fd);
	}
	const Elf64_Ehdr *h = (const void *)image;
	const Elf64_Shdr *sections = (const void *)(image + h->e_shoff);
	uint64_t at = 0, self = 0;
	for (int i = 0; i < h->e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *s = (const void *)(image + sections[i].sh_offset);
		const char *names = image + sections[sections[i].sh_link].sh_offset;
		for (uint64_t n = 0; n < sections[i].sh_size / sizeof *s; n++) {
			if (s[n].st_value && !strcmp(names + s[n].st_name, name))
				at = s[n].st_value;
			if (!strcmp(names + s[n].st_name, "MainCapability"))
				self = s[n].st_value;
		}
	}
	return at ? CAPABILITY + (at - self) : 0;
}

/* counters sets what the run-time system has counted to other numbers, as a program whose counters jump. Nothing that it does
   depends on them. */
void counters(void)
{
	static unsigned turn;
	uint64_t *stats = symbol("stats");
	for (int i = 0; stats && i < STATS_WORDS; i++)
		stats[i] = lies[(turn + i) % LIES];
	*(uint64_t *)(CAPABILITY + BASE_OF_CAPABILITY + 1184) = lies[turn % LIES]; /* total_allocated of GHC 9.0 */
	turn++;
}

/* capabilities_lie has the list of capabilities longer, empty, nowhere, or full of what is none, while nothing looks at it but who
   looks from outside. */
void capabilities_lie(void)
{
	static char many[1024][BASE_OF_CAPABILITY + 1400];
	static void *list[1024];
	uint32_t *count = symbol("n_capabilities");
	void **array = symbol("capabilities"), *honest = *array;
	uint32_t one = *count;
	for (unsigned i = 0; i < 1024; i++) {
		list[i] = many[i];
		*(uint32_t *)(many[i] + BASE_OF_CAPABILITY + BASE_CAPABILITY_NO) = i;
		*(uint64_t *)(many[i] + BASE_OF_CAPABILITY + 1184) = lies[i % LIES];
	}
	void *const places[] = {list, (void *)8, (void *)~0ul, array, honest};
	for (unsigned i = 0; i < LIES * 5; i++) {
		*array = places[i % 5];
		*count = lies[i % LIES];
		spin(20);
	}
	*array = honest;
	*count = one;
}

/* A stack that its frames say goes on for ever. */
static struct {
	StgStack s;
	StgWord words[64];
} chunk;
static StgTSO thread;

static void stacks_from(uint64_t *sp)
{
	enum { WORDS = 48 };
	uint64_t saved[WORDS];
	StgTSO **current = (StgTSO **)(CAPABILITY + BASE_OF_CAPABILITY + BASE_CURRENT_TSO), *honest = *current;
	memcpy(saved, sp, sizeof saved);
	SET_HDR(&chunk.s, &stg_STACK_info, 0);
	SET_HDR(&thread, &stg_TSO_info, 0);
	thread.id = ~0ul;
	thread.stackobj = &chunk.s;
	StgUnderflowFrame *under = (void *)(chunk.words + 8);
	for (int how = 0; how < 6; how++) {
		chunk.s.stack_size = how % 2 ? ~0u : 64;
		chunk.s.sp = chunk.words;
		for (int i = 0; i < 64; i += 2) { /* update frames, of two words */
			chunk.words[i] = (StgWord)&stg_upd_frame_info;
			chunk.words[i + 1] = (StgWord)&thread;
		}
		under->info = (void *)&stg_stack_underflow_frame_info;
		under->next_chunk = how < 3 ? &chunk.s : (StgStack *)lies[how];
		for (int i = 0; i < WORDS; i += 2) {
			switch (how) {
			case 0: case 1:
				sp[i] = (uint64_t)&stg_stack_underflow_frame_info, sp[i + 1] = (uint64_t)&chunk;
				break;
			case 2: case 3:
				sp[i] = (uint64_t)&stg_upd_frame_info, sp[i + 1] = ~0ul;
				break;
			default:
				sp[i] = lies[(i + how) % LIES], sp[i + 1] = (uint64_t)&chunk;
			}
		}
		if (how % 3)
			*current = how % 3 == 1 ? &thread : (StgTSO *)lies[how];
		spin(20);
		*current = honest;
	}
	memcpy(sp, saved, sizeof saved);
}

/* stacks has Haskell's stack pointer in rbp. */
__attribute__((naked)) void stacks(void)
{
	__asm__("mov %%rbp, %%rdi\n\tjmp *%0" : : "r"(stacks_from));
}

/* structures has threads, blocks and large objects in circles, and counts without bounds. It does not return: no collection would end. */
void structures(void)
{
	static StgTSO ring[3];
	static bdescr blocks[2];
	static struct { StgStack s; StgWord words[1024]; } own;
	SET_HDR(&own.s, &stg_STACK_info, 0);
	own.s.stack_size = ~0u;
	own.s.sp = own.words;
	for (int i = 0; i < 1024; i += 2) {
		own.words[i] = (StgWord)&stg_upd_frame_info;
		own.words[i + 1] = (StgWord)&ring[0];
	}
	for (int i = 0; i < 3; i++) {
		SET_HDR(&ring[i], &stg_TSO_info, 0);
		ring[i].global_link = &ring[(i + 1) % 3];
		ring[i]._link = &ring[i];
		ring[i].stackobj = &own.s;
		ring[i].id = lies[i + 2];
		ring[i].why_blocked = i + 1;
		ring[i].block_info.closure = (StgClosure *)&ring[(i + 1) % 3];
		ring[i].tot_stack_size = ~0u;
	}
	for (int i = 0; i < 2; i++) {
		blocks[i].link = &blocks[i ? 0 : 1];
		blocks[i].u.back = &blocks[i];
		blocks[i].start = (StgPtr)&own;
		blocks[i].free = (StgPtr)~0ul;
		blocks[i].blocks = ~0u;
		blocks[i].flags = BF_LARGE;
		blocks[i].gen = &generations[0];
		blocks[i].gen_no = 0;
	}
	for (int g = 0; g < 2; g++) {
		generations[g].threads = &ring[0];
		generations[g].old_threads = &ring[0];
		generations[g].blocks = generations[g].large_objects = &blocks[0];
		generations[g].n_blocks = generations[g].n_words = generations[g].n_large_words = 1ul << 63;
	}
	for (;;)
		spin(1000);
}

/* mappings maps a page of a file with code, at another address each time; they stay if keep is set, as many as the kernel lets. */
void mappings(const char *path, int keep)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *area = mmap(0, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (uint64_t at = 0;; at += 8192) {
		if (at >= 1ul << 40)
			at = 0;
		if (mmap(area + at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
			for (;;)
				spin(1000);
		}
		if (!keep)
			mmap(area + at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	}
}

/* map_file maps a file as code. */
void map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		close(fd);
	}
}
