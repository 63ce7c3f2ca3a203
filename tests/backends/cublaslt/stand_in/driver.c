/* A stand-in for the CUDA driver: device memory is host memory, events read the clock, and of our own kernels
   only those that fill operands, copy an addend and compare results do anything. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>
#include <stdint.h>
typedef int R; typedef uint64_t P;
static double now(){struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec*1e3+t.tv_nsec*1e-6;}
static __thread void* stack[16]; static __thread int depth=0;
static __thread int mode=0;
struct stream{int capturing; int n;}; struct event{double t;};
static int ctx0, ctx1;
long fake_allocs=0, fake_bytes=0, fake_events=0, fake_graphs=0, fake_streams=0;
R cuInit(unsigned f){return 0;}
R cuDriverGetVersion(int*v){*v=13000;return 0;}
R cuDeviceGetCount(int*n){char*e=getenv("FAKE_DEVICES");*n=e?atoi(e):1;return 0;}
R cuDeviceGet(int*d,int o){*d=o;return 0;}
R cuDeviceGetName(char*n,int l,int d){memset(n,0,l);strncpy(n,"NVIDIA FAKE",l);return 0;}
R cuDeviceGetAttribute(int*v,int a,int d){*v= a==75?9: a==76?0: a==38?62914560: a==16?132: a==97?232448:0;return 0;}
R cuDevicePrimaryCtxRetain(void**c,int d){*c=d?&ctx1:&ctx0;return 0;}
R cuCtxPushCurrent_v2(void*c){stack[depth++]=c;return 0;}
R cuCtxPopCurrent_v2(void**c){*c=stack[--depth];return 0;}
R cuCtxGetCurrent(void**c){*c=depth?stack[depth-1]:0;return 0;}
R cuCtxSetCurrent(void*c){if(depth)stack[depth-1]=c;else stack[depth++]=c;return 0;}
R cuCtxGetDevice(int*d){if(!depth)return 201;*d=stack[depth-1]==&ctx1;return 0;}
/* Memory that was given back is never given out again, and touching it faults: a stale address shows at once. */
static const size_t page=4096;
R cuMemAlloc_v2(P*p,size_t n){size_t all=(n+2*page-1)/page*page; char*q=mmap(0,all,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE,-1,0);if(q==MAP_FAILED)return 2;*(size_t*)q=all;*p=(P)(q+page);fake_allocs++;return 0;}
R cuMemFree_v2(P p){char*q=(char*)p-page;mmap(q,*(size_t*)q,PROT_NONE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE|MAP_FIXED,-1,0);fake_allocs--;return 0;}
R cuMemGetInfo_v2(size_t*f,size_t*t){*f=1ul<<32;*t=1ul<<33;return 0;}
R cuMemcpyDtoHAsync_v2(void*h,P d,size_t n,void*s){memcpy(h,(void*)d,n);return 0;}
R cuMemcpyHtoDAsync_v2(P d,void*h,size_t n,void*s){memcpy((void*)d,h,n);return 0;}
R cuMemcpyDtoDAsync_v2(P d,P h,size_t n,void*s){memcpy((void*)d,(void*)h,n);return 0;}
R cuMemsetD32Async(P d,unsigned c,size_t n,void*s){for(size_t i=0;i<n;i++)((unsigned*)d)[i]=c;return 0;}
R cuMemsetD8Async(P d,unsigned char c,size_t n,void*s){memset((void*)d,c,n);return 0;}
R cuStreamCreate(void**s,unsigned f){*s=calloc(1,sizeof(struct stream));fake_streams++;return 0;}
R cuStreamDestroy_v2(void*s){free(s);fake_streams--;return 0;}
R cuStreamSynchronize(void*s){return 0;}
/* A live capture of a blocking stream shows on the legacy stream of its device, and of no other. */
static int implicit[2];
void fake_capture(int device,int live){implicit[device]=live;}
R cuStreamIsCapturing(void*s,int*st){if((uintptr_t)s>2){*st=((struct stream*)s)->capturing;return 0;}*st=0;if(!depth)return 201;return (uintptr_t)s<2&&implicit[stack[depth-1]==&ctx1]?906:0;}
R cuStreamBeginCapture_v2(void*s,int m){((struct stream*)s)->capturing=1;return 0;}
R cuStreamEndCapture(void*s,void**g){((struct stream*)s)->capturing=0;*g=malloc(8);fake_graphs++;return 0;}
R cuGraphInstantiateWithFlags(void**e,void*g,unsigned long long f){*e=malloc(8);fake_graphs++;return 0;}
R cuGraphLaunch(void*e,void*s){struct timespec t={0,100000};nanosleep(&t,0);return 0;}
R cuGraphUpload(void*e,void*s){return 0;}
R cuGraphExecDestroy(void*e){free(e);fake_graphs--;return 0;}
R cuGraphDestroy(void*e){free(e);fake_graphs--;return 0;}
R cuEventCreate(void**e,unsigned f){*e=calloc(1,sizeof(struct event));fake_events++;return 0;}
R cuEventRecord(void*e,void*s){((struct event*)e)->t=now();return 0;}
R cuEventQuery(void*e){return 600;}
R cuEventSynchronize(void*e){return 0;}
R cuEventElapsedTime_v2(float*f,void*a,void*b){*f=((struct event*)b)->t-((struct event*)a)->t;return 0;}
R cuEventElapsedTime(float*f,void*a,void*b){*f=((struct event*)b)->t-((struct event*)a)->t;return 0;}
R cuEventDestroy_v2(void*e){free(e);fake_events--;return 0;}
R cuThreadExchangeStreamCaptureMode(int*m){int o=mode;mode=*m;*m=o;return 0;}
R cuModuleLoadData(void**m,void*i){*m=malloc(8);return 0;}
R cuModuleGetFunction(void**f,void*m,const char*n){*f=strdup(n);return 0;}
R cuFuncGetAttribute(int*v,int a,void*f){*v=32;return 0;}
R cuFuncSetAttribute(void*f,int a,int v){return 0;}
R cuModuleUnload(void*m){return 0;}
static uint64_t mix(uint64_t z){z+=0x9E3779B97F4A7C15ull;z=(z^(z>>30))*0xBF58476D1CE4E5B9ull;z=(z^(z>>27))*0x94D049BB133111EBull;return z^(z>>31);}
static double number(const char*p,long i,int kind){float f; uint32_t w; if(kind==0)return ((float*)p)[i]; if(kind==1)return ((double*)p)[i]; if(kind==2)return ((_Float16*)p)[i];
  w=(uint32_t)((uint16_t*)p)[i]<<16; memcpy(&f,&w,4); return f;}
static int same(const char*p,const char*q,long i,int kind){int n=kind==0?4:kind==1?8:kind<4?2:1; return !memcmp(p+i*n,q+i*n,n);}
R cuLaunchKernel(void*f,unsigned gx,unsigned gy,unsigned gz,unsigned bx,unsigned by,unsigned bz,unsigned sh,void*s,void**p,void**x){
  const char*n=f;
  if(!strncmp(n,"fill_",5)){
    char*o=*(char**)p[0]; long batch=*(long*)p[1],rows=*(long*)p[2],cols=*(long*)p[3],ld=*(long*)p[4],st=*(long*)p[5]; uint64_t seed=*(uint64_t*)p[6]; double low=*(double*)p[7],high=*(double*)p[8];
    for(long b=0;b<batch;b++)for(long r=0;r<rows;r++)for(long c=0;c<cols;c++){ long at=b*st+r*ld+c; double u=(double)(mix(seed+at)>>11)*0x1p-52-1.0; u=u<0?-(low-(high-low)*u):low+(high-low)*u; float v=u;
      uint32_t w; memcpy(&w,&v,4);
      if(!strcmp(n,"fill_float32"))((float*)o)[at]=v; else if(!strcmp(n,"fill_float64"))((double*)o)[at]=u;
      else if(!strcmp(n,"fill_float16"))((_Float16*)o)[at]=v; else if(!strcmp(n,"fill_bfloat16")){w+=0x7fff+((w>>16)&1);((uint16_t*)o)[at]=w>>16;}
      else ((unsigned char*)o)[at]=(unsigned char)(mix(seed+at)&0x37);}
  } else if(!strncmp(n,"addend_",7)&&*(void**)p[1]&&!*(void**)p[2]&&*(double*)p[3]==1.0){
    char*o=*(char**)p[0],*c=*(char**)p[1]; long batch=*(long*)p[5],rows=*(long*)p[6],cols=*(long*)p[7],ld=*(long*)p[8],st=*(long*)p[9];
    long z=!strcmp(n,"addend_complex128")?16:!strcmp(n,"addend_float64")||!strcmp(n,"addend_complex64")?8:!strcmp(n,"addend_float32")?4:2;
    for(long b=0;b<batch;b++)for(long r=0;r<rows;r++)memcpy(o+(b*st+r*ld)*z,c+(b*st+r*ld)*z,cols*z);
  } else if(!strcmp(n,"compare")){
    int*report=*(int**)p[0],kind=*(int*)p[3]; char*got=*(char**)p[1],*want=*(char**)p[2]; double atol=*(double*)p[4],rtol=*(double*)p[5];
    for(long i=0;i<*(long*)p[6];i++){ double g=number(got,i,kind),w=number(want,i,kind),e=g>w?g-w:w-g; if(!(g==w||same(got,want,i,kind)||(e<=1.7976931348623157e308&&e<=atol+rtol*(w<0?-w:w))))report[1]=1; }
    report[0]=1;
  } else if(getenv("FAKE_TRACE")) fprintf(stderr,"launch %s\n",n);
  return 0;}
R cuGetErrorName(int e,const char**s){*s="CUDA_ERROR_FAKE";return 0;}
R cuGetErrorString(int e,const char**s){*s="a made-up error";return 0;}
static void* self;
R cuGetProcAddress_v2(const char*n,void**pfn,int v,uint64_t fl,int*st){
  char b[256]; *pfn=0; 
  snprintf(b,256,"%s_v2",n); *pfn=dlsym(self,b); if(!*pfn)*pfn=dlsym(self,n);
  if(!strcmp(n,"cuGraphInstantiate"))*pfn=dlsym(self,"cuGraphInstantiateWithFlags");
  if(st)*st=*pfn?0:1; return *pfn?0:500;}
R cuGetProcAddress(const char*n,void**pfn,int v,uint64_t fl){return cuGetProcAddress_v2(n,pfn,v,fl,0);}
__attribute__((constructor)) static void init(){Dl_info i; dladdr((void*)init,&i); self=dlopen(i.dli_fname,RTLD_NOW|RTLD_NOLOAD); if(!self)self=dlopen(i.dli_fname,RTLD_NOW);}
