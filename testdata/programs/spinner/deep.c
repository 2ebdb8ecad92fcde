/* More of C's stack than a census follows. */
int spinner_deep(int i)
{
    volatile char frame[128 << 10];
    frame[0] = (char)i;
    while (frame[0] != 0)
        frame[1] = frame[0];
    return frame[1];
}
